# espalier - build, test, install. `make help` lists the targets.
#
# Everything lands in $(BUILD); a target that changes flags (asan, headless) uses its own folder below it.
# A new source file needs no line here: folders are listed, files are found.

BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
VERSION := $(shell sed -n 's/^.define ESP_VERSION "\(.*\)"/\1/p' engine/espalier.h)

CC      ?= cc
PKG_CONFIG ?= pkg-config
CFLAGS  ?= -O2 -g
WARN    := -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes
ifeq ($(CI),true)
WARN    += -Werror
endif
# No contraction: a * b + c rounds twice everywhere, so that every build gives the same bits.
STRICT  := -std=c11 -D_GNU_SOURCE -ffp-contract=off -fno-math-errno -fno-trapping-math -fPIC -fopenmp
INCLUDE := -Iengine -Ikernels -Iviz -Isessions -Itui
ALL_CFLAGS = $(STRICT) $(WARN) $(INCLUDE) $(CFLAGS) $(EXTRA) $(DEFS) -MMD -MP

LIB_PKGS := libcjson libpcre2-8 libutf8proc
TUI_PKGS := ncursesw readline
LIB_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(LIB_PKGS))
LIB_LIBS   = $(shell $(PKG_CONFIG) --libs $(LIB_PKGS)) -lm -lpthread -ldl
TUI_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(TUI_PKGS))
TUI_LIBS   = $(shell $(PKG_CONFIG) --libs $(TUI_PKGS))
# Only espalier-dot, which draws pictures of trees, needs Graphviz; where there is none, it is not built.
DOT_PKGS   := libgvc libcgraph
DOT_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(DOT_PKGS))
DOT_LIBS   = $(shell $(PKG_CONFIG) --libs $(DOT_PKGS))
DOT        := $(shell $(PKG_CONFIG) --exists $(DOT_PKGS) && echo $(BUILD)/espalier-dot)

# ---------------------------------------------------------------- sources

# kernels/cpu/isa/*.c is compiled once per instruction set; which one runs is decided at start.
ifneq ($(filter x86_64 amd64,$(shell uname -m)),)
ISAS := generic avx2 avx512
AMX  := amx
else
ISAS := generic
AMX  :=
endif
ISA_FLAGS_generic :=
KERNEL_OPT        := -O3
ISA_FLAGS_avx2    := -mavx2 -mfma -mf16c
ISA_FLAGS_avx512  := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c

ISA_SRC := $(wildcard kernels/cpu/isa/*.c)
LIB_SRC := $(wildcard engine/*.c engine/model/*.c engine/drafters/*.c engine/verifiers/*.c kernels/*.c kernels/cpu/*.c)
LIB_SRC := $(filter-out engine/example.c $(if $(AMX),,kernels/cpu/amx.c),$(LIB_SRC))
# What draws needs no terminal: it is in every program and in the tests.
VIEW_SRC := $(wildcard sessions/*.c viz/*.c tui/panes/*.c) \
            $(addprefix tui/,ansi.c cast.c decode.c export.c fuzzy.c keys.c layout.c line_file.c mouse.c \
              palette.c player.c player_find.c replay_line.c ring.c side_by_side.c snapshot.c state.c theme.c ui.c)
CLI_SRC := $(filter-out tui/cli/no_interface.c,$(wildcard tui/cli/*.c))
TUI_SRC := $(filter-out $(VIEW_SRC),$(wildcard tui/*.c tui/commands/*.c))

obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
ISA_OBJ := $(foreach isa,$(ISAS),$(patsubst %.c,$(BUILD)/obj/%.$(isa).o,$(ISA_SRC)))
LIB_OBJ := $(call obj,$(LIB_SRC)) $(ISA_OBJ)
VIEW_OBJ := $(call obj,$(VIEW_SRC))
CLI_OBJ := $(call obj,$(CLI_SRC))
TUI_OBJ := $(call obj,$(TUI_SRC))
DOT_OBJ := $(call obj,$(wildcard viz/dot/*.c viz/*.c sessions/*.c))
# The longest first: they start in this order.
TEST_SRC := $(wildcard tests/lossless/*.c) $(wildcard tests/unit/*.c)
EMU_TEST_SRC := $(wildcard tests/emu/unit/*.cpp)
TEST_BIN := $(patsubst tests/%.c,$(BUILD)/tests/%,$(TEST_SRC)) \
            $(patsubst tests/%.cpp,$(BUILD)/tests/%,$(EMU_TEST_SRC))
TEST_SCRIPTS := $(wildcard tests/cli/*.sh tests/tui/*.sh)

CUDA_SRC := $(wildcard kernels/cuda/*.cu)
EMU_SRC  := $(wildcard tests/emu/*.cpp)
EMU_OBJ  := $(patsubst %,$(BUILD)/emu/%.o,$(EMU_SRC))
EMU_CUDA_OBJ := $(patsubst %,$(BUILD)/emu/%.o,$(CUDA_SRC))
CUDA_OBJ := $(patsubst %,$(BUILD)/cuda/%.o,$(CUDA_SRC))
ifeq ($(origin NVCC),undefined)
NVCC     := $(shell command -v nvcc || command -v /usr/local/cuda/bin/nvcc)
endif

# Objects of the tests are kept for the next build.
.SECONDARY:

.PHONY: all cuda cuda-kit check-cuda bench-cuda demo check asan headless install uninstall clean help deps deps-check tests pages

all: $(BUILD)/espalier $(BUILD)/libespalier.a $(BUILD)/libespalier.so cuda $(DOT)

help:
	@echo 'make              build $(BUILD)/espalier and libespalier'
	@echo 'make demo         install missing packages, build, open the interface on the built-in pair'
	@echo 'make check        all tests, then the unit and lossless tests under sanitizers'
	@echo 'make cuda         $(BUILD)/libespalier-cuda.so, the GPU backend (needs nvcc; part of make)'
	@echo 'make asan         only the sanitizer pass'
	@echo 'make check-cuda   on a machine with a GPU: the tests of the CUDA backend'
	@echo 'make bench-cuda   on a machine with a GPU: its speed, as tables'
	@echo 'make cuda-kit     $(KIT): what those two need, to be carried there'
	@echo 'make headless     $(BUILD)/headless/espalier: no ncurses, readline or graphviz'
	@echo 'make install      to $$(DESTDIR)$$(PREFIX), PREFIX=$(PREFIX)'
	@echo 'make uninstall    remove what install put there'
	@echo 'make pages        print man/espalier-policies.7 and man/espalier-interface.7 anew'
	@echo 'make clean        remove $(BUILD)'
	@echo 'ESPALIER_NO_APT=1 keeps make from installing Debian packages'

# ---------------------------------------------------------------- compiling

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LIB_CFLAGS) $(if $(filter tui/%,$<),$(TUI_CFLAGS)) \
	    $(if $(filter viz/dot/%,$<),$(DOT_CFLAGS)) -c -o $@ $<

define isa_rule
$(BUILD)/obj/%.$(1).o: %.c
	@mkdir -p $$(@D)
	$$(CC) $$(ALL_CFLAGS) $$(KERNEL_OPT) $$(ISA_FLAGS_$(1)) -DESP_ISA=$(1) -c -o $$@ $$<
endef
$(foreach isa,$(ISAS),$(eval $(call isa_rule,$(isa))))

$(BUILD)/obj/kernels/cpu/%.o: DEFS += $(foreach isa,$(ISAS) $(AMX),-DESP_HAVE_$(isa))
$(BUILD)/obj/kernels/cpu/amx.o: DEFS += $(KERNEL_OPT) $(ISA_FLAGS_avx512) -mavx512bf16 -mamx-tile -mamx-bf16
# Where the built-in pair and the themes are once installed; a build tree finds its own first.
$(BUILD)/obj/engine/paths.o: DEFS += -DESP_DATA_DIR='"$(PREFIX)/share/espalier"'

$(BUILD)/libespalier.a: $(LIB_OBJ)
	@rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/libespalier.so: $(LIB_OBJ) engine/libespalier.map
	$(CC) $(CFLAGS) $(EXTRA) -shared -fopenmp -Wl,-soname,libespalier.so.0 \
	    -Wl,--version-script=engine/libespalier.map -o $@ $(LIB_OBJ) $(LIB_LIBS)

$(BUILD)/espalier: $(VIEW_OBJ) $(CLI_OBJ) $(TUI_OBJ) $(BUILD)/libespalier.a
	$(CC) $(CFLAGS) $(EXTRA) -fopenmp -rdynamic -o $@ $^ $(TUI_LIBS) $(LIB_LIBS)

$(BUILD)/espalier-dot: $(DOT_OBJ) $(BUILD)/libespalier.a
	$(CC) $(CFLAGS) $(EXTRA) -fopenmp -o $@ $^ $(DOT_LIBS) $(LIB_LIBS)

# Test programs link everything but main(), so that they can look inside.
$(BUILD)/obj/tests/%.o: DEFS += -Itests
TEST_OBJ := $(call obj,$(wildcard tests/*.c))

$(BUILD)/tests/%: tests/%.c $(TEST_OBJ) $(VIEW_OBJ) $(BUILD)/libespalier.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LIB_CFLAGS) -Itests -MF $@.d -o $@ $< $(TEST_OBJ) $(VIEW_OBJ) \
	    $(BUILD)/libespalier.a $(LIB_LIBS)

$(BUILD)/tests/cuda/bench: tests/cuda/bench.c $(BUILD)/libespalier.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LIB_CFLAGS) -MF $@.d -o $@ $< $(BUILD)/libespalier.a $(LIB_LIBS)

$(BUILD)/example: engine/example.c $(BUILD)/libespalier.a
	$(CC) $(ALL_CFLAGS) -MF $@.d -o $@ $< $(BUILD)/libespalier.a $(LIB_LIBS)

tests: $(TEST_BIN) $(BUILD)/emu/libespalier-cuda.so

# Pages that list what tables hold are printed by the program; tests hold the two together.
pages: $(BUILD)/espalier
	for page in policies interface; do \
	    tests/$${page}_page $(BUILD)/espalier >man/espalier-$$page.7.new && \
	        mv man/espalier-$$page.7.new man/espalier-$$page.7 || exit 1; \
	done

# ---------------------------------------------------------------- CUDA

comma := ,
# The backend for NVIDIA GPUs is a library of its own, loaded only where it is wanted. Code for the listed
# architectures, as far as this nvcc knows them, and PTX of the newest of them for what comes later.
CUDA_ARCHS    ?= 80 90 100
CUDA_KNOWN     = $(filter $(CUDA_ARCHS),$(patsubst compute_%,%,$(shell $(NVCC) --list-gpu-arch)))
CUDA_GENCODE   = $(foreach a,$(CUDA_KNOWN),-gencode arch=compute_$(a),code=sm_$(a)) \
                 -gencode arch=compute_$(lastword $(CUDA_KNOWN)),code=compute_$(lastword $(CUDA_KNOWN))
NVCC_FLAGS    ?= -O3 -lineinfo --threads 4
# The library carries its own copy of what it needs besides CUDA.
UTF8PROC_A     = $(wildcard $(shell $(CC) -print-file-name=libutf8proc.a))

ifneq ($(NVCC),)
cuda: $(BUILD)/libespalier-cuda.so
else
cuda:
	@echo 'espalier: no nvcc here, so the CUDA backend is not built'
endif

$(BUILD)/cuda/%.cu.o: %.cu
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 $(CUDA_GENCODE) $(NVCC_FLAGS) $(INCLUDE) -MMD -MP -MF $(@:.o=.d) \
	    -Xcompiler=-fPIC,-Wall$(if $(filter true,$(CI)),$(comma)-Werror) -c -o $@ $<

CUDA_SHARED := $(addprefix $(BUILD)/obj/,engine/error.o kernels/batch.o kernels/model_desc.o)

$(BUILD)/libespalier-cuda.so: $(CUDA_OBJ) $(CUDA_SHARED) kernels/cuda/plugin.map
	$(NVCC) $(CUDA_GENCODE) -shared -cudart static -Xlinker --version-script=kernels/cuda/plugin.map \
	    -o $@ $(CUDA_OBJ) $(CUDA_SHARED) $(or $(UTF8PROC_A),-lutf8proc) -lcublasLt

# The same sources on the host, against tests/emu: what the tests load where there is no GPU.
CXX_CFLAGS = -std=c++17 -ffp-contract=off -fno-strict-aliasing -fno-semantic-interposition -fPIC -Wall -Wextra -Wshadow=local -Wvla \
             -Wno-unknown-pragmas $(if $(filter true,$(CI)),-Werror) -DESP_EMULATE -Itests -Itests/emu \
             $(INCLUDE) $(CFLAGS) $(EXTRA) -MMD -MP

$(BUILD)/emu/%.o: %
	@mkdir -p $(@D)
	$(CXX) $(CXX_CFLAGS) -x c++ -c -o $@ $<

$(BUILD)/emu/libespalier-cuda.so: $(EMU_OBJ) $(EMU_CUDA_OBJ) $(CUDA_SHARED)
	$(CXX) $(CFLAGS) $(EXTRA) -shared -o $@ $^ -lutf8proc

$(BUILD)/tests/emu/unit/%: $(BUILD)/emu/tests/emu/unit/%.cpp.o $(EMU_OBJ) $(BUILD)/obj/tests/check.o
	@mkdir -p $(@D)
	$(CXX) $(CFLAGS) $(EXTRA) -o $@ $^

# ---------------------------------------------------------------- packages

BUILD_DEBS := gcc make pkg-config libc6-dev libncurses-dev libreadline-dev libcjson-dev \
              libpcre2-dev libutf8proc-dev libgraphviz-dev
CHECK_DEBS := g++ tmux mandoc procps graphviz libxml2-utils

# Installs the Debian packages in $(1) that are missing, if this is a Debian and it is allowed.
define install_debs
	@if [ -z "$$ESPALIER_NO_APT" ] && command -v dpkg-query >/dev/null; then \
	    missing=; \
	    for p in $(1); do \
	        dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$p"; \
	    done; \
	    if [ -n "$$missing" ]; then \
	        sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
	        echo "espalier: installing missing packages:$$missing"; \
	        $$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	            $$sudo apt-get install -y -qq --no-install-recommends $$missing >/dev/null || exit 1; \
	    fi; \
	fi
endef

deps:
	$(call install_debs,$(BUILD_DEBS))

deps-check:
	$(call install_debs,$(BUILD_DEBS) $(CHECK_DEBS))

# ---------------------------------------------------------------- the two commands of the README

DEMO_PROMPT := Once upon a time there was a king who had three sons,

# Helping threads stay awake between passes, or times at the pace of an eye are not those at full speed.
demo: deps
	@$(MAKE) --no-print-directory -j$$(nproc) $(if $(wildcard /dev/nvidiactl),all,$(BUILD)/espalier $(DOT))
	@if [ -t 0 ] && [ -t 1 ]; then \
	    GOMP_SPINCOUNT=$${GOMP_SPINCOUNT:-2000000} $(BUILD)/espalier -p '$(DEMO_PROMPT)' --temp 0.6; \
	else \
	    printf '%s' '$(DEMO_PROMPT)'; \
	    $(BUILD)/espalier generate -p '$(DEMO_PROMPT)' --temp 0.6 -n 200 --baseline --stats; \
	fi

SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all
ASAN     := BUILD=$(BUILD)/asan CFLAGS='-O1 -g -fno-omit-frame-pointer' \
            KERNEL_OPT='-O2 -fno-var-tracking -fno-sanitize=undefined' EXTRA='$(SANITIZE)'
TIMED_BIN = $(BUILD)/tests/unit/terminal
# Two drive the program through a terminal, and that is the same program in both passes.
ASAN_BIN  = $(filter-out %/terminal %/cursor,$(patsubst $(BUILD)/%,$(BUILD)/asan/%,$(TEST_BIN)))
TEST_ENV := XDG_STATE_HOME=$(abspath $(BUILD))/state ESPALIER_TESTS=tests ESPALIER=$(BUILD)/espalier BUILD=$(BUILD) MAKE='$(MAKE)' LC_ALL=C.UTF-8

check: deps-check
	@$(MAKE) --no-print-directory -j$$(nproc) all tests $(BUILD)/example
	@$(MAKE) --no-print-directory -j$$(nproc) $(ASAN) tests
	@$(TEST_ENV) tests/run $(filter-out $(TIMED_BIN),$(TEST_BIN)) $(TEST_SCRIPTS) --quick $(ASAN_BIN) --alone $(TIMED_BIN)

asan: deps-check
	@$(MAKE) --no-print-directory -j$$(nproc) $(ASAN) tests
	@$(TEST_ENV) tests/run --quick $(ASAN_BIN)

# ---------------------------------------------------------------- headless

# For machines that have nothing: no ncurses, readline or graphviz; archives where there are some, and
# the one library that Debian has no archive of lies beside the program.
HEADLESS := $(BUILD)/headless
HEADLESS_OBJ = $(VIEW_OBJ) $(CLI_OBJ) $(call obj,tui/cli/no_interface.c)
CJSON_SO := libcjson.so.1

headless: $(HEADLESS)/espalier
	@cp -L "$$($(CC) -print-file-name=$(CJSON_SO))" $(HEADLESS)/$(CJSON_SO)

$(HEADLESS)/espalier: $(HEADLESS_OBJ) $(BUILD)/libespalier.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(EXTRA) -rdynamic -static-libgcc -Wl,-rpath,'$$ORIGIN' -o $@ $^ \
	    -l:libpcre2-8.a -l:libutf8proc.a -l:libgomp.a -lcjson -lm -lpthread -ldl

# ---------------------------------------------------------------- on a machine with a GPU

# What check-cuda and bench-cuda need, in one folder that can be made elsewhere and carried to a machine
# that has nothing but a driver: programs that bring their libraries, and the plugin.
KIT       := $(BUILD)/cuda-kit
KIT_TESTS := unit/rows unit/rows_agree unit/ratio unit/forward unit/step unit/batch_invariant unit/logits \
             lossless/greedy_identity
KIT_LIBS  := -Wl,-rpath,'$$ORIGIN/../..:$$ORIGIN/..:$$ORIGIN' \
             -l:libpcre2-8.a -l:libutf8proc.a -l:libgomp.a -lcjson -lm -lpthread -ldl
KIT_LINK   = $(CC) $(CFLAGS) $(EXTRA) -s -rdynamic -static-libgcc -o $@ $^ $(KIT_LIBS)

$(KIT)/tests/%: $(BUILD)/obj/tests/%.o $(TEST_OBJ) $(VIEW_OBJ) $(BUILD)/libespalier.a
	@mkdir -p $(@D)
	$(KIT_LINK)

$(KIT)/tests/bench: $(BUILD)/obj/tests/cuda/bench.o $(BUILD)/libespalier.a
	@mkdir -p $(@D)
	$(KIT_LINK)

$(KIT)/espalier: $(HEADLESS_OBJ) $(BUILD)/libespalier.a
	@mkdir -p $(@D)
	$(KIT_LINK)

cuda-kit: $(KIT)/espalier $(KIT)/tests/bench $(addprefix $(KIT)/tests/,$(KIT_TESTS)) $(BUILD)/libespalier-cuda.so
	@cp $(BUILD)/libespalier-cuda.so $(KIT)
	@cp -L "$$($(CC) -print-file-name=$(CJSON_SO))" $(KIT)/$(CJSON_SO)
	@touch $(KIT)/ready

# A kit that was brought along is used as it is.
KIT_MADE = $(if $(wildcard $(KIT)/ready),,cuda-kit)

check-cuda:
	@$(if $(KIT_MADE),$(MAKE) --no-print-directory -j$$(nproc) cuda-kit)
	@tests/cuda/check $(KIT)

bench-cuda:
	@$(if $(KIT_MADE),$(MAKE) --no-print-directory -j$$(nproc) cuda-kit)
	@ESPALIER_CUDA_PLUGIN=$(KIT)/libespalier-cuda.so $(KIT)/tests/bench

# ---------------------------------------------------------------- install

INSTALL ?= install
SHARE   := $(DESTDIR)$(PREFIX)/share
PC_LIBS := libcjson libpcre2-8 libutf8proc

install: all
	$(INSTALL) -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/include
	$(INSTALL) -m 755 $(BUILD)/espalier $(DOT) $(DESTDIR)$(PREFIX)/bin
	$(INSTALL) -m 644 engine/espalier.h engine/espalier_event.h $(DESTDIR)$(PREFIX)/include
	$(INSTALL) -m 644 $(BUILD)/libespalier.a $(DESTDIR)$(PREFIX)/lib
	$(INSTALL) -m 755 $(BUILD)/libespalier.so $(DESTDIR)$(PREFIX)/lib/libespalier.so.0
	ln -sf libespalier.so.0 $(DESTDIR)$(PREFIX)/lib/libespalier.so
	$(if $(NVCC),$(INSTALL) -m 755 $(BUILD)/libespalier-cuda.so $(DESTDIR)$(PREFIX)/lib)
	printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$${prefix}/lib' 'Name: espalier' \
	    'Description: tree-based speculative decoding of language models' 'Version: $(VERSION)' \
	    'Requires.private: $(PC_LIBS)' 'Cflags: -I$${prefix}/include' \
	    'Libs: -L$${libdir} -lespalier' 'Libs.private: -lgomp -lm -lpthread -ldl' \
	    > $(DESTDIR)$(PREFIX)/lib/pkgconfig/espalier.pc
	for page in man/*.[157]; do \
	    section=$${page##*.}; \
	    $(INSTALL) -d $(SHARE)/man/man$$section; \
	    $(INSTALL) -m 644 $$page $(SHARE)/man/man$$section; \
	done
	for model in engine/models/*/; do \
	    $(INSTALL) -d $(SHARE)/espalier/models/$$(basename $$model); \
	    $(INSTALL) -m 644 $$model* $(SHARE)/espalier/models/$$(basename $$model); \
	done
	$(INSTALL) -d $(SHARE)/bash-completion/completions
	$(INSTALL) -m 644 tui/cli/completion.bash $(SHARE)/bash-completion/completions/espalier
	$(INSTALL) -d $(SHARE)/espalier/themes
	$(INSTALL) -m 644 themes/*.theme $(SHARE)/espalier/themes
	$(INSTALL) -d $(SHARE)/espalier/sessions
	$(INSTALL) -m 644 sessions/samples/*.esp.jsonl sessions/samples/README.md $(SHARE)/espalier/sessions
	$(if $(DESTDIR),,-ldconfig 2>/dev/null || true)

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/espalier $(DESTDIR)$(PREFIX)/bin/espalier-dot \
	    $(DESTDIR)$(PREFIX)/include/espalier.h \
	    $(DESTDIR)$(PREFIX)/include/espalier_event.h $(DESTDIR)$(PREFIX)/lib/libespalier.* $(DESTDIR)$(PREFIX)/lib/libespalier-cuda.so \
	    $(DESTDIR)$(PREFIX)/lib/pkgconfig/espalier.pc
	for page in man/*.[157]; do rm -f $(SHARE)/man/man$${page##*.}/$$(basename $$page); done
	rm -f $(SHARE)/bash-completion/completions/espalier
	rm -rf $(SHARE)/espalier

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
