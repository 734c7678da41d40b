"""stub"""
def name_replacements(doc, lexicon, known, words):
    return {}
