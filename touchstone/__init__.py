"""In a checkout `touchstone` is another name of `lib` (lib.core.alias says how).

The wheel holds the files of lib under the name touchstone, and not this one. In the checkout the
notebooks say `from lib.doors import wrap`, other people's code `from touchstone.doors import wrap`,
and both get the same function.
"""

from lib.core.alias import also_called

also_called(__name__)
