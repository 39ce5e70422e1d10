# espalier - build, test, install. `make help` lists the targets.
#
# All output is written to $(BUILD). Targets with other flags (asan, headless) use their own subfolders of $(BUILD).
# A new source file needs no line here, because the Makefile lists folders, not files.

BUILD   ?= build
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
DESTDIR ?=
VERSION := $(shell sed -n 's/^.define ESP_VERSION "\(.*\)"/\1/p' kernels/version.h)

# To cross-compile, set CC and PKG_CONFIG (and CXX, for the emulated GPU). The compiler determines
# everything else.
CC      ?= cc
PKG_CONFIG ?= pkg-config
MACHINE := $(shell $(CC) -dumpmachine)
DARWIN  := $(findstring darwin,$(MACHINE))
OBJCOPY ?= $(shell $(CC) -print-prog-name=objcopy)
ifeq ($(origin AR),default)
AR      := $(shell $(CC) -print-prog-name=ar)
endif
CFLAGS  ?= -O2 -g
WARN    := -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes
ifeq ($(CI),true)
WARN    += -Werror
endif
# -ffp-contract=off: every build rounds a * b + c twice, so all builds give bit-identical results.
STRICT  := -std=c11 -D_GNU_SOURCE -ffp-contract=off -fno-math-errno -fno-trapping-math -fPIC -pthread
INCLUDE := -I.
ALL_CFLAGS = $(STRICT) $(WARN) $(INCLUDE) $(CFLAGS) $(EXTRA) $(DEFS) -MMD -MP

LIB_PKGS := libcjson libpcre2-8 libutf8proc
TUI_PKGS := ncursesw readline
# SQLite is needed because the sessions that users keep are stored in an SQLite file.
KEEP_PKGS := sqlite3
# On macOS, the libraries come from Homebrew. Homebrew keeps three of them in separate folders, because macOS has its own
# libraries with the same names.
ifneq ($(DARWIN),)
BREW    := make coreutils pkg-config cjson pcre2 utf8proc ncurses readline sqlite graphviz
INSTALL ?= ginstall
export PKG_CONFIG_PATH := $(subst $() ,:,$(foreach p,ncurses readline sqlite,$(shell brew --prefix $(p) 2>/dev/null)/lib/pkgconfig) $(PKG_CONFIG_PATH))
ifeq ($(filter clean help,$(MAKECMDGOALS))$(shell $(PKG_CONFIG) --exists $(LIB_PKGS) $(TUI_PKGS) $(KEEP_PKGS) && echo here),)
$(error espalier: libraries are missing; run `brew install $(BREW)`, then `gmake`)
endif
endif
LIB_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(LIB_PKGS))
LIB_LIBS   = $(shell $(PKG_CONFIG) --libs $(LIB_PKGS)) -lm -lpthread -ldl
TUI_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(TUI_PKGS))
KEEP_LIBS  = $(shell $(PKG_CONFIG) --libs $(KEEP_PKGS))
TUI_LIBS   = $(shell $(PKG_CONFIG) --libs $(TUI_PKGS)) $(KEEP_LIBS)
# Only espalier-dot, which draws pictures of trees, needs Graphviz; without Graphviz it is not built.
DOT_PKGS   := libgvc libcgraph
DOT_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(DOT_PKGS))
DOT_LIBS   = $(shell $(PKG_CONFIG) --libs $(DOT_PKGS))
DOT        := $(shell $(PKG_CONFIG) --exists $(DOT_PKGS) && echo $(BUILD)/espalier-dot)

# With --hosts, each other machine runs the program espalier-rank, which computes its part of the
# model. The program is built once for each installed MPI library.
MPIS     := $(if $(DARWIN),,$(foreach mpi,openmpi mpich,$(if $(shell command -v mpicc.$(mpi)),$(mpi))))
RANKS    := $(MPIS:%=$(BUILD)/espalier-rank.%)

# ---------------------------------------------------------------- sources

# Each file of kernels/cpu/isa/ is compiled once for each instruction set, and the program chooses
# a set when it starts. VNNI extends AVX-512, and AVX-VNNI extends AVX2. Both change only the products
# with quantised blocks, so only these products are compiled for them. AMX extends VNNI; for AMX,
# amx.c and its own versions of the products are compiled. EMULATED is the set that replaces
# AVX-VNNI in the tests: it emulates the instruction of AVX-VNNI, which many processors lack.
X86      := $(filter x86_64-% amd64-%,$(MACHINE))
ifneq ($(X86),)
ISAS := generic avx2 avx512
VNNI := vnni avxvnni
AMX  := $(if $(DARWIN),,amx)
EMULATED := dpbusd
else ifneq ($(filter aarch64-% arm64-%,$(MACHINE)),)
ISAS := generic neon
# dotprod and i8mm extend NEON in the same way as VNNI extends AVX-512.
VNNI := dotprod i8mm
AMX  :=
else
ISAS := generic
VNNI :=
AMX  :=
EMULATED :=
endif
ISA_FLAGS_generic :=
# -g1 instead of -g: with -O3 -g, the compiler spends half of its time on debugging information about
# where each variable is stored. -g1 leaves this information out.
KERNEL_OPT        := -O3 -g1
ISA_FLAGS_avx2    := -mavx2 -mfma -mf16c
ISA_FLAGS_avx512  := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c
ISA_FLAGS_vnni     = $(ISA_FLAGS_avx512) -mavx512vnni -DESP_VNNI -DESP_BASE=avx512
ISA_FLAGS_avxvnni  = $(ISA_FLAGS_avx2) -mavxvnni -DESP_VNNI -DESP_BASE=avx2
ISA_FLAGS_amx      = $(ISA_FLAGS_vnni) -mavx512bf16 -mamx-tile -mamx-bf16 -mamx-int8 -DESP_AMX
ISA_FLAGS_neon    :=
ISA_FLAGS_dotprod := -march=armv8.2-a+dotprod -DESP_DOTPROD -DESP_BASE=neon
ISA_FLAGS_i8mm    := -march=armv8.2-a+dotprod+i8mm -DESP_DOTPROD -DESP_I8MM -DESP_BASE=neon
# The tests emulate the instructions of the tile unit (AMX) in C, because few processors have this unit.
ISA_FLAGS_tiles    = $(ISA_FLAGS_avx2) -DESP_AMX -DESP_BASE=avx2 -include tests/emu/tiles.h
# The instruction set `dpbusd` is AVX2 with an emulation of dpbusd, the instruction of AVX-VNNI. With
# EVEX=1, the real instruction is used in its AVX-512 encoding, which is as fast as AVX-VNNI.
ISA_FLAGS_dpbusd   = $(ISA_FLAGS_avx2) -DESP_VNNI -DESP_BASE=avx2 -include tests/emu/dpbusd.h $(if $(EVEX),-DESP_EVEX)

# These variables contain the names and the linker options of the shared library. $(call shared,NAME,FOLDER) expands to the
# options that make a library with this name. FOLDER is the folder in which the library is installed; only macOS uses it.
LIB_SO      := libespalier.$(if $(DARWIN),dylib,so)
LIB_SO_NAME := $(if $(DARWIN),libespalier.0.dylib,libespalier.so.0)
ORIGIN      := $(if $(DARWIN),@loader_path,$$ORIGIN)
AS_NEEDED    = $(if $(DARWIN),-Wl$(comma)-dead_strip_dylibs,-Wl$(comma)--as-needed)
shared       = $(if $(DARWIN),-dynamiclib -install_name $(2)$(1),-shared -Wl$(comma)-soname$(comma)$(1))
LIB_SO_FLAGS = $(call shared,$(LIB_SO_NAME),$(LIBDIR)/) \
               $(if $(DARWIN),-Wl$(comma)-exported_symbols_list$(comma)$(BUILD)/libespalier.exports,-Wl$(comma)--version-script=$(BUILD)/libespalier.map)

# These headers are installed with the library. Other programs include them.
PUBLIC_HEADERS := $(addprefix engine/,espalier.h espalier_event.h espalier_info.h espalier_lists.h espalier_settings.h espalier_stats.h \
                      espalier_options.h espalier_ranks.h espalier_value.h espalier_chat.h compare.h find_models.h \
                      lossless.h pace.h perplexity.h text_token.h tree_measure.h) \
                  $(addprefix engine/model/,inflate.h preset.h quantize.h) \
                  $(addprefix engine/train/,train_draft.h train_selector.h) \
                  engine/support/statistics.h $(addprefix kernels/,clock.h rank_lap.h serve.h status.h streamed.h version.h)
# tui/, viz/ and sessions/ may also include these headers, but no other headers of engine/ and kernels/. The shared library
# exports the functions that these headers and the installed headers declare.
SHARED_HEADERS := $(addprefix engine/support/,suggestion.h hash.h int_map.h open_file.h part_file.h paths.h \
                      utf8_stream.h write_file.h) \
                  engine/text_token.h kernels/system.h kernels/state_plan.h

# $(call sources,FOLDERS) lists all .c files in these folders and their subfolders.
sources = $(shell find $(1) -name '*.c' | LC_ALL=C sort)
obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))

# ISA_BUILD is the build folder with the objects of kernels/cpu/isa/. To use the objects that another build has compiled, set
# it to the folder of that build.
ISA_BUILD := $(BUILD)
ISA_SRC  := $(call sources,kernels/cpu/isa)
KERNEL_SRC := $(shell find kernels -path kernels/cuda -prune -o -name '*.[ch]' -print -o -name '*.def' -print | LC_ALL=C sort)
NO_LIB   := engine/example.c kernels/no_plugin.c $(wildcard kernels/ranks/mpi/*.c) $(if $(AMX),,kernels/cpu/amx.c) $(ISA_SRC) \
            kernels/system_$(if $(DARWIN),linux,darwin).c
LIB_OBJ  := $(call obj,$(filter-out $(NO_LIB),$(call sources,kernels engine))) \
            $(foreach isa,$(ISAS),$(patsubst %.c,$(ISA_BUILD)/obj/%.$(isa).o,$(ISA_SRC))) \
            $(foreach isa,$(VNNI) $(AMX),$(addprefix $(ISA_BUILD)/obj/kernels/cpu/isa/,blocks.$(isa).o table.$(isa).o))
# DRAW_OBJ and VIEW_OBJ need no terminal. They are linked into espalier, the headless program and the tests.
DRAW_OBJ := $(call obj,$(filter-out viz/dot/%,$(call sources,viz sessions)))
# The HTML page of a recording is compiled into the program, as strings.
PAGE     := $(addprefix viz/page/,embed.sh page.html page.css page.js)
PAGE_OBJ := $(BUILD)/obj/viz/page/parts.o
DRAW_OBJ += $(PAGE_OBJ)
VIEW_OBJ := $(DRAW_OBJ) $(call obj,$(call sources,tui/model tui/view tui/worker tui/lessons tui/commands))
APP_OBJ  := $(call obj,$(call sources,tui/app))
CLI_OBJ  := $(call obj,$(filter-out %/no_interface.c,$(call sources,tui/cli)))
DOT_OBJ  := $(call obj,$(call sources,viz/dot)) $(filter-out $(call obj,$(wildcard sessions/library*.c)),$(DRAW_OBJ))

TEST_OBJ := $(call obj,$(wildcard tests/*.c))
TEST_BIN := $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/lossless/*.c tests/unit/*.c)) \
            $(patsubst tests/%.cpp,$(BUILD)/tests/%,$(wildcard tests/emu/unit/*.cpp))
# The tests that take longest start first, in this order.
LONGEST  := %/greedy_identity %/chi_square %/batch_invariant %/cuda_failures %/chi_square_toy %/draft_heads %/logits %/forward
TEST_BIN := $(filter $(LONGEST),$(TEST_BIN)) $(filter-out $(LONGEST),$(TEST_BIN))
TEST_SCRIPTS := $(wildcard tests/structure/*.sh tests/cli/*.sh tests/tui/*.sh)

CUDA_SRC := $(wildcard kernels/cuda/*.cu)
EMU_OBJ  := $(patsubst %,$(BUILD)/emu/%.o,$(wildcard tests/emu/*.cpp))
EMU_CUDA_OBJ := $(patsubst %,$(BUILD)/emu/%.o,$(CUDA_SRC))
ifeq ($(origin NVCC),undefined)
NVCC     := $(shell command -v nvcc || command -v /usr/local/cuda/bin/nvcc)
endif
# If NVCC12 names an nvcc of CUDA 12, a second plugin is built with it. It is for drivers that are
# too old for the first plugin.
NVCC12   ?=
# The folder for CUDA objects and plugins.
CUDA_BUILD ?= $(BUILD)

# Make must not delete the objects of the tests after linking, because the next build uses them.
.SECONDARY:

.PHONY: fuzz fuzz-tests
.PHONY: print-public-headers print-shared-headers test
.PHONY: all cuda cuda-kit check-cuda check-arm arm-tests bench-cuda bench-cpu bench-attention bench-counted demo race check asan headless deb static dist install uninstall clean help deps deps-check deps-arm tests pages

# ---------------------------------------------------------------- what make prints

# For each file, make prints a short line: its number, the number of files, the action and the file's name. With V=1, make
# prints the whole commands instead.
ifeq ($(V),1)
say =
Q   :=
else
ALL_OBJ := $(LIB_OBJ) $(VIEW_OBJ) $(APP_OBJ) $(CLI_OBJ) $(if $(DOT),$(DOT_OBJ)) \
           $(if $(filter tests,$(MAKECMDGOALS)),$(TEST_OBJ) $(TEST_BIN) $(EMU_OBJ) $(EMU_CUDA_OBJ)) \
           $(filter $(BUILD)/tests/%,$(MAKECMDGOALS))
ALL_OBJ := $(sort $(ALL_OBJ))
TO_DO   := $(filter-out $(wildcard $(ALL_OBJ)),$(ALL_OBJ))
DONE    :=
# The number of files includes only objects that do not exist yet, but make also prints a line for each
# file that it compiles again or links. If there are more lines than this number, make stops printing
# the number.
of_all   = $(if $(word $(words $(DONE)),$(TO_DO)),/$(words $(TO_DO)))
say      = $(eval DONE += x)@printf '[%3d%s] %-4s %s\n' $(words $(DONE)) '$(of_all)' $(1) $(2);
Q       := @
endif

all: $(BUILD)/espalier $(BUILD)/libespalier.a $(BUILD)/$(LIB_SO) cuda $(DOT) $(RANKS)

help:
	@echo 'make              build $(BUILD)/espalier and libespalier'
	@echo 'make demo         install missing packages, build, open the interface on the built-in pair'
	@echo 'make race         the same build, then plain decoding against trees at true speed'
	@echo '                  SEED=7 for both: use this seed instead of a random one'
	@echo 'make check        all tests in a short form; CI=true: in full, and under sanitizers,'
	@echo '                  with more repetitions, larger sizes, the emulated GPU under sanitizers, and nvcc'
	@echo '                  QUICK=1: only the short tests; V=1 shows the commands of any target'
	@echo 'make test T=NAME  one test by its name, such as rows or options; QUICK=1: its short form'
	@echo 'make cuda         $(BUILD)/libespalier-cuda.so, the GPU backend (needs nvcc; part of make);'
	@echo '                  NVCC12=/path/to/nvcc of CUDA 12: libespalier-cuda12.so, too, for drivers before 580'
	@echo 'make asan         only the tests under sanitizers'
	@echo 'make fuzz         each harness of tests/fuzz for FUZZ_SECONDS=$(FUZZ_SECONDS) seconds; FUZZ=NAME: only that one (needs clang)'
	@echo 'make check-arm    the program for 64-bit ARM and its tests, in an emulator (qemu-user, gcc-aarch64-linux-gnu);'
	@echo '                  QUICK=1: only the short tests, which make check CI=true also runs'
	@echo 'make check-cuda   on a machine with a GPU: the tests of the CUDA backend'
	@echo 'make bench-cuda   on a machine with a GPU: its speed, as tables'
	@echo 'make bench-cpu    speed of the CPU backend for every weight type, as a table'
	@echo 'make bench-counted  speedups of drafters for given costs of rows and passes, without a clock'
	@echo 'make bench-attention  time of the CPU backend'"'"'s attention for each order of the rows of a tree, as CSV'
	@echo 'make cuda-kit     $(KIT): a folder with all that check-cuda and bench-cuda need, for a machine with a GPU'
	@echo 'make deb          Debian packages in $(BUILD)/deb; make static: one program that needs no library;'
	@echo '                  make dist: the source as an archive'
	@echo 'make headless     $(BUILD)/headless/espalier: no ncurses, readline or graphviz'
	@echo 'make install      to $$(DESTDIR)$$(PREFIX), PREFIX=$(PREFIX)'
	@echo 'make uninstall    remove the files that make install has installed'
	@echo 'make pages        print man/espalier-drafters.7, -interface.7, the settings in man/espalier.1 and man/screen.svg again'
	@echo 'make clean        remove $(BUILD)'
	@echo 'ESPALIER_NO_APT=1 keeps make from installing Debian packages'

# ---------------------------------------------------------------- compiling

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(ALL_CFLAGS) $(LIB_CFLAGS) $(if $(filter tui/%,$<),$(TUI_CFLAGS)) \
	    $(if $(filter viz/dot/%,$<),$(DOT_CFLAGS)) -c -o $@ $<

define isa_rule
$(ISA_BUILD)/obj/%.$(1).o: %.c
	@mkdir -p $$(@D)
	$$(call say,CC,$$<:$(1))$$(CC) $$(ALL_CFLAGS) $$(KERNEL_OPT) $$(ISA_FLAGS_$(1)) -DESP_ISA=$(1) -c -o $$@ $$<
endef
$(foreach isa,$(ISAS) $(VNNI) $(AMX) $(EMULATED),$(eval $(call isa_rule,$(isa))))

$(sort $(BUILD)/obj/kernels/cpu/%.o $(ISA_BUILD)/obj/kernels/cpu/%.o): DEFS += $(foreach isa,$(ISAS) $(VNNI) $(AMX),-DESP_HAVE_$(isa))
$(BUILD)/obj/kernels/cpu/amx.o: DEFS += $(KERNEL_OPT) $(ISA_FLAGS_amx) -DESP_ISA=amx
# These objects are only for the tests. They contain amx.c and the products of AMX with emulated tiles, the products of
# emulated AVX-VNNI, and a version of cpu.c that can choose either of these emulated instruction sets.
EMULATED_OBJ := $(foreach isa,$(AMX),$(addprefix $(BUILD)/tests/obj/kernels/cpu/,amx.o isa/blocks.o isa/table.o cpu.o)) \
                $(foreach isa,$(EMULATED),$(addprefix $(ISA_BUILD)/obj/kernels/cpu/isa/,blocks.$(isa).o table.$(isa).o))
$(BUILD)/tests/obj/kernels/cpu/%.o: DEFS += $(foreach isa,$(ISAS) $(VNNI) $(AMX) $(EMULATED),-DESP_HAVE_$(isa)) -DESP_HAVE_tiles
$(BUILD)/tests/obj/kernels/cpu/amx.o $(BUILD)/tests/obj/kernels/cpu/isa/%.o: DEFS += $(KERNEL_OPT) $(ISA_FLAGS_tiles) -DESP_ISA=tiles
$(BUILD)/tests/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<:emulated)$(CC) $(ALL_CFLAGS) -c -o $@ $<
# $(BUILD)/commit contains the name of the commit that is built, if git is installed. The tables that
# `espalier bench --suite` prints name this commit. The file changes only when the commit changes.
$(BUILD)/commit: always
	@mkdir -p $(@D)
	@git describe --always --dirty >$@.new 2>/dev/null || cat tui/package/commit >$@.new; cmp -s $@.new $@ && rm $@.new || mv $@.new $@
always:
.PHONY: always
$(BUILD)/obj/tui/cli/bench/suite_committed.o: $(BUILD)/commit
$(BUILD)/obj/tui/cli/bench/suite_committed.o: DEFS += -DESP_COMMIT='"$(shell cat $(BUILD)/commit)"'

# ESP_BUILD is a hash of the source files of all code that ranks run. Ranks compare their hashes
# before they compute together.
$(BUILD)/obj/kernels/cpu/order_wire.o: $(KERNEL_SRC)
$(BUILD)/obj/kernels/cpu/order_wire.o: DEFS += -DESP_BUILD='"$(shell cat $(KERNEL_SRC) | cksum | tr ' ' -)"'

# ESP_DATA_DIR is the folder of the built-in models and the themes after installation. A program in a build folder looks
# for them in the source tree first.
$(BUILD)/obj/engine/support/paths.o: DEFS += -DESP_DATA_DIR='"$(PREFIX)/share/espalier"'

$(PAGE_OBJ): $(PAGE)
	@mkdir -p $(@D)
	$(call say,CC,viz/page)viz/page/embed.sh >$(@:.o=.c) && $(CC) $(STRICT) $(WARN) $(INCLUDE) $(CFLAGS) $(EXTRA) -c -o $@ $(@:.o=.c)

# The command that links programs and libraries.
LINK = $(CC) $(CFLAGS) $(LDFLAGS) $(EXTRA)

$(BUILD)/libespalier.a: $(LIB_OBJ)
	@rm -f $@
	$(call say,AR,$@)$(AR) rcs $@ $^

$(BUILD)/libespalier.map: $(PUBLIC_HEADERS) $(SHARED_HEADERS)
	@mkdir -p $(@D)
	@{ echo '{ global:'; cat $^ | grep -v -e typedef -e 'static inline' -e '^    [a-z]' | grep -o '\<esp_[a-z0-9_]*(' | \
	    sort -u | tr '(' ';'; echo 'local: *; };'; } >$@

# This file has the symbols of libespalier.map in the format that the linker of macOS needs.
$(BUILD)/libespalier.exports: $(BUILD)/libespalier.map
	@sed -n 's/^\(esp_.*\);/_\1/p' $< >$@

$(BUILD)/$(LIB_SO): $(LIB_OBJ) $(BUILD)/libespalier.$(if $(DARWIN),exports,map)
	$(call say,LINK,$@)$(LINK) $(LIB_SO_FLAGS) -o $@ $(LIB_OBJ) $(LIB_LIBS)

PROGRAM_OBJ := $(VIEW_OBJ) $(CLI_OBJ) $(APP_OBJ)

$(BUILD)/espalier: $(PROGRAM_OBJ) $(BUILD)/libespalier.a
	$(call say,LINK,$@)$(LINK) -rdynamic -o $@ $^ $(TUI_LIBS) $(LIB_LIBS)

# Links espalier with the shared library instead of the static library. If this succeeds, the program
# uses only functions that the shared library exports.
$(BUILD)/shared/espalier: $(PROGRAM_OBJ) $(BUILD)/$(LIB_SO)
	@mkdir -p $(@D)
	@ln -sf $(LIB_SO) $(BUILD)/$(LIB_SO_NAME)
	$(call say,LINK,$@)$(LINK) -rdynamic -o $@ $(PROGRAM_OBJ) -L$(BUILD) -lespalier \
	    -Wl,-rpath,'$(ORIGIN)/..' $(TUI_LIBS) $(LIB_LIBS)

# mpicc is the compiler command of an MPI library. It calls the compiler that built this library, which can differ from $(CC).
$(RANKS): $(BUILD)/espalier-rank.%: kernels/ranks/mpi/mpi_rank.c $(BUILD)/libespalier.a
	$(call say,LINK,$@)mpicc.$* $(ALL_CFLAGS) -MF $(BUILD)/espalier-rank.$*.d -o $@ $(filter %.c %.a,$^) $(LIB_LIBS)

$(BUILD)/espalier-dot: $(DOT_OBJ) $(BUILD)/libespalier.a
	$(call say,LINK,$@)$(LINK) -o $@ $^ $(DOT_LIBS) $(LIB_LIBS)

# Test programs are linked with all code except tui/cli, so they can test internal functions. All this code is in one shared
# library. Linking it into each of a hundred programs took longer than compiling the programs.
$(BUILD)/tests/everything.so: $(TEST_OBJ) $(EMULATED_OBJ) $(VIEW_OBJ) $(APP_OBJ) $(filter-out $(if $(AMX),%/kernels/cpu/cpu.o),$(LIB_OBJ))
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(LINK) $(call shared,everything.so,@rpath/) -o $@ $^ $(TUI_LIBS) $(LIB_LIBS)

$(BUILD)/tests/%: tests/%.c $(BUILD)/tests/everything.so
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(ALL_CFLAGS) $(LIB_CFLAGS) -MF $@.d -o $@ $< $(BUILD)/tests/everything.so \
	    -Wl,-rpath,'$(ORIGIN)/..' -Wl,-rpath,'$(abspath $(BUILD)/tests)' $(AS_NEEDED) $(TUI_LIBS) $(LIB_LIBS)

BENCHES = $(addprefix $(BUILD)/tests/,cuda/bench cuda/shapes cpu/bench cpu/attention)

# The CPU benchmark also runs emulated instruction sets. The link command names the objects of these sets before the library,
# so the linker takes them instead of the library's objects.
$(BUILD)/tests/cpu/bench: $(EMULATED_OBJ)
$(BENCHES): $(BUILD)/tests/%: tests/%.c $(BUILD)/libespalier.a
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(ALL_CFLAGS) $(LIB_CFLAGS) -MF $@.d -o $@ $< $(filter %.o,$^) $(BUILD)/libespalier.a $(LIB_LIBS)

$(BUILD)/example: engine/example.c $(BUILD)/libespalier.a
	$(call say,CC,$<)$(CC) $(ALL_CFLAGS) -Iengine -MF $@.d -o $@ $< $(BUILD)/libespalier.a $(LIB_LIBS)

tests: $(TEST_BIN) $(BUILD)/emu/libespalier-cuda.so

print-public-headers:
	@printf '%s\n' $(PUBLIC_HEADERS)

print-shared-headers:
	@printf '%s\n' $(SHARED_HEADERS)

# Some manual pages have lists of settings, drafters or keys. `make pages` runs the program, which prints these lists from its
# tables. Tests compare the pages with the program's output. `make pages` also makes the README's picture from a real screen;
# this needs python3.
pages: $(BUILD)/espalier
	for page in drafters interface; do \
	    tests/$${page}_page $(BUILD)/espalier >man/espalier-$$page.7.new && \
	        mv man/espalier-$$page.7.new man/espalier-$$page.7 || exit 1; \
	done
	tests/settings_page $(BUILD)/espalier >man/espalier.1.new && mv man/espalier.1.new man/espalier.1
	man/screen.py $(BUILD)/espalier >man/screen.svg.new && mv man/screen.svg.new man/screen.svg || \
	    { rm -f man/screen.svg.new; exit 1; }

# ---------------------------------------------------------------- CUDA

comma := ,
# The backend for NVIDIA GPUs is a separate library, which is loaded only if it is used. It has machine code for each
# architecture in CUDA_ARCHS that nvcc knows. For other GPUs, the driver compiles the library's PTX when it loads the
# library. GPUs newer than all listed architectures use the PTX of the newest architecture; GPUs between two listed
# architectures use the PTX of the oldest.
CUDA_ARCHS    ?= 80 89 90 100 120
CUDA_KNOWN     = $(filter $(CUDA_ARCHS),$(patsubst compute_%,%,$(shell $(NVCC) --list-gpu-arch)))
CUDA_PTX       = $(sort $(firstword $(CUDA_KNOWN)) $(lastword $(CUDA_KNOWN)))
CUDA_GENCODE   = $(if $(CUDA_ONCE),$(CUDA_FROM_ONE),\
                 $(foreach a,$(CUDA_KNOWN),-gencode arch=compute_$(a),code=sm_$(a)) \
                 $(foreach a,$(CUDA_PTX),-gencode arch=compute_$(a),code=compute_$(a)))
# With CUDA_ONCE=1, nvcc makes the code for all architectures from the PTX of the oldest one. This
# saves a compiler pass for each of the other architectures. The code is correct, because nothing
# in kernels/cuda depends on the architecture (tests/structure/arrows.sh checks this).
empty :=
CUDA_FROM_ONE  = -gencode 'arch=compute_$(firstword $(CUDA_KNOWN)),code=[$(subst $(empty) $(empty),$(comma),$(strip \
                 compute_$(firstword $(CUDA_KNOWN)) $(CUDA_KNOWN:%=sm_%)))]'
# Compression makes the library six times smaller. With CUDA 12, nvcc gets a different option, because drivers for CUDA 12 may
# not be able to read the output of --compress-mode.
CUDA_MAJOR     = $(shell $(1) --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
NVCC_SMALL     = $(if $(filter 11 12,$(call CUDA_MAJOR,$(NVCC))),-Xfatbin=-compress-all,--compress-mode=size)
NVCC_FLAGS    ?= -O3 -lineinfo --threads 4 $(NVCC_SMALL)

CUDA_PLUGINS  := $(strip $(if $(NVCC),$(CUDA_BUILD)/libespalier-cuda.so) $(if $(NVCC12),$(CUDA_BUILD)/libespalier-cuda12.so))
ifneq ($(NVCC12),)
ifneq ($(call CUDA_MAJOR,$(NVCC12)),12)
$(error NVCC12=$(NVCC12) is not an nvcc of CUDA 12; set NVCC12 to the path of one)
endif
endif

cuda: $(CUDA_PLUGINS)
	$(if $(NVCC)$(NVCC12)$(filter command,$(origin NVCC)),,@echo 'espalier: nvcc was not found, so the CUDA backend is not built')

CUDA_SHARED := $(addprefix $(BUILD)/obj/kernels/,status.o batch.o row_checks.o dtype.o model_desc.o walk.o state_plan.o \
                  ranks/rank_plan.o)

# Rules for a plugin. $(1): cuda or cuda12; $(2): the variable that contains the path of nvcc for this plugin.
define cuda_rules
$(CUDA_BUILD)/$(1)/% $(CUDA_BUILD)/libespalier-$(1).so: override NVCC := $$($(2))

$(CUDA_BUILD)/$(1)/%.cu.o: %.cu
	@mkdir -p $$(@D)
	$$(call say,NVCC,$$<)$$(NVCC) -std=c++17 $$(CUDA_GENCODE) $$(NVCC_FLAGS) $$(INCLUDE) -MMD -MP -MF $$(@:.o=.d) \
	    -Xcompiler=-fPIC,-Wall$$(if $$(filter true,$$(CI)),$$(comma)-Werror) -c -o $$@ $$<

$(CUDA_BUILD)/libespalier-$(1).so: $(patsubst %,$(CUDA_BUILD)/$(1)/%.o,$(CUDA_SRC)) $(CUDA_SHARED) kernels/cuda/plugin.map
	$$(call say,LINK,$$@)$$(NVCC) $$(CUDA_GENCODE) -shared -cudart static -Xlinker --version-script=kernels/cuda/plugin.map \
	    -Xlinker -rpath='$$$$ORIGIN:/usr/local/cuda/lib64' -Xcompiler -static-libstdc++,-static-libgcc \
	    -o $$@ $$(filter %.o,$$^) -ldl
endef
$(eval $(call cuda_rules,cuda,NVCC))
$(eval $(call cuda_rules,cuda12,NVCC12))

# The CUDA sources are also compiled for the CPU, with the emulator in tests/emu. Tests load this library if there is no GPU.
CXX_CFLAGS = -std=c++17 -ffp-contract=off -fno-strict-aliasing -fno-semantic-interposition -fPIC -Wall -Wextra -Wshadow=local -Wvla \
             -Wno-unknown-pragmas $(if $(filter true,$(CI)),-Werror) -DESP_EMULATE \
             -ftls-model=initial-exec $(INCLUDE) $(CFLAGS) $(EXTRA) $(EMU_SANITIZE) $(EMU_OPT) -MMD -MP
# The emulator spends most of its time in operations of a whole warp. These operations use only
# values that the threads pass to them, not the backend's memory. So they are compiled without
# sanitizers, which makes the tests faster.
$(EMU_OBJ): EMU_OPT := -O2
$(addprefix $(BUILD)/emu/tests/emu/emu_,warp.cpp.o block.cpp.o): EMU_OPT := -O2 -fno-sanitize=all

$(BUILD)/emu/%.o: %
	@mkdir -p $(@D)
	$(call say,CXX,$<)$(CXX) $(CXX_CFLAGS) -x c++ -c -o $@ $<

$(BUILD)/emu/libespalier-cuda.so: $(EMU_OBJ) $(EMU_CUDA_OBJ) $(CUDA_SHARED)
	$(call say,LINK,$@)$(CXX) $(CFLAGS) $(EXTRA) -shared -Wl,-Bsymbolic-functions -o $@ $^

$(BUILD)/tests/emu/unit/%: $(BUILD)/emu/tests/emu/unit/%.cpp.o $(EMU_OBJ) $(BUILD)/obj/tests/check.o
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CXX) $(CFLAGS) $(EXTRA) -o $@ $^

# ---------------------------------------------------------------- packages

BUILD_DEBS := gcc make pkg-config libc6-dev libncurses-dev libreadline-dev libcjson-dev \
              libpcre2-dev libutf8proc-dev libsqlite3-dev libgraphviz-dev
ARM_DEBS   := gcc-aarch64-linux-gnu qemu-user
CHECK_DEBS := g++ tmux mandoc procps graphviz libxml2-utils $(if $(filter true,$(CI)),zsh fish $(if $(X86),$(ARM_DEBS)))

# Installs the Debian packages in $(1) that are missing. On other systems, and if ESPALIER_NO_APT is set, it does nothing.
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

deps-arm:
	$(call install_debs,$(BUILD_DEBS) $(ARM_DEBS))

# ---------------------------------------------------------------- make demo and make race

DEMO_PROMPT := There was once upon a time a fisherman who lived with his wife in a little hut close by the sea.
# A pass of the built-in target model takes less than a millisecond. On some machines this is so
# short that drafting a tree saves little time. --width 4 makes the target four times as wide. Then
# a pass takes as long as a pass of a model with 16 times as many weights; the output is the same.
DEMO_WIDTH := 4
# This drafter changes its trees and thresholds often, so the user can watch them. In the
# interface, `:drafter auto` chooses the fastest drafter.
DEMO_DRAFTER := dynatree:Bmid=1,Bmax=2,taul=0.3,rhostop=0.05,rhodeep=0.1,tau=0,N=8,history=price

# SEED=7 sets the seed; otherwise it is random.
WITH_SEED := $(if $(SEED),--seed $(SEED))

demo: deps
	@$(MAKE) --no-print-directory -j$$(nproc) $(if $(wildcard /dev/nvidiactl),all,$(BUILD)/espalier $(DOT))
	@if [ -t 0 ] && [ -t 1 ]; then \
	    $(BUILD)/espalier -p '$(DEMO_PROMPT)' --temp 0.6 --width $(DEMO_WIDTH) --drafter $(DEMO_DRAFTER) $(WITH_SEED); \
	else \
	    printf '%s' '$(DEMO_PROMPT)'; \
	    $(BUILD)/espalier generate -p '$(DEMO_PROMPT)' --temp 0.6 --width $(DEMO_WIDTH) --drafter $(DEMO_DRAFTER) $(WITH_SEED) -n 200 --baseline --stats; \
	fi

race: deps
	@$(MAKE) --no-print-directory -j$$(nproc) $(BUILD)/espalier
	@$(BUILD)/espalier race $(WITH_SEED)

# float-cast-overflow: converting a float that is out of the range of an integer type gives
# different results on different processors. So the sanitizer also checks such conversions.
SANITIZE := -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all
# -Wno-maybe-uninitialized: with the sanitizer's checks, gcc does not see that some variables
# are initialised. -g1: the sanitizers' reports need only line numbers, and complete debugging
# information would take a third of the compile time. use-after-return=0 turns off a check that takes
# a third of the run time. Emulated kernels return no pointers to their variables, so the check is
# not needed.
ASAN     := BUILD=$(BUILD)/asan CFLAGS='-O1 -g1 -fno-omit-frame-pointer' \
            KERNEL_OPT='-O2 -fno-sanitize=undefined,float-cast-overflow -fno-sanitize-address-use-after-scope -Wno-maybe-uninitialized' \
            EXTRA='$(SANITIZE)' EMU_SANITIZE='-fno-sanitize=float-cast-overflow --param asan-use-after-return=0'
# tests/tui/races.sh runs programs with several threads under the thread sanitizer. The programs use the objects of
# kernels/cpu/isa/ from the normal build, so the sanitizer does not check this code.
TSAN     := BUILD=$(BUILD)/tsan ISA_BUILD=$(BUILD) CFLAGS='-O1 -g1 -fno-omit-frame-pointer' \
            KERNEL_OPT='-O2 -fno-sanitize=thread' EXTRA='-fsanitize=thread'
TSAN_BIN  = $(addprefix $(BUILD)/tsan/,espalier tests/unit/ring tests/unit/mailbox tests/unit/pool)
TIMED_BIN = $(BUILD)/tests/unit/terminal
# Five tests are left out under sanitizers. Four of them run espalier in a terminal, and they always run the program of the
# normal build. The fifth, chi_square, runs the code of chi_square_toy on the built-in models, which takes minutes.
ASAN_BIN  = $(filter-out %/terminal %/cursor %/unsafe_text %/shutdown %/lossless/chi_square,$(patsubst $(BUILD)/%,$(BUILD)/asan/%,$(TEST_BIN) $(FUZZ_BIN)))
CHECKED  := $(BUILD)/checked
TEST_ENV := XDG_STATE_HOME=$(abspath $(BUILD))/state ESPALIER_TESTS=tests ESPALIER=$(BUILD)/espalier BUILD=$(BUILD) \
            MAKE='$(MAKE) $(if $(filter true,$(CI)),CUDA_BUILD=$(CHECKED),NVCC=) NVCC12=' LC_ALL=C.UTF-8

# Continuous integration (CI=true) checks more than `make check` does for a user. It reads the
# inputs of tests/fuzz under sanitizers, compiles the CUDA library with nvcc, and runs tests with
# more repetitions and larger sizes.
ifeq ($(CI),true)
CHECK_SIZE := --whole
CHECK_ASAN  = --quick $(ASAN_BIN)
CHECK_TSAN := tests/tui/races.sh
CHECK_ARM   = $(if $(X86),$(ARM_HERE))
# CI builds this plugin only to see whether the CUDA code compiles, for three GPU architectures and
# with little optimisation. The plugin is in a separate folder, where no other target uses it.
CHECK_CUDA := CUDA_BUILD=$(CHECKED) CUDA_ARCHS='80 90 100' CUDA_ONCE=1 NVCC_FLAGS='-Xcicc -O1 -Xptxas -O0 --threads 2'
else
CHECK_SIZE := --quick
CHECK_FUZZ  = $(FUZZ_BIN)
CHECK_CUDA := NVCC= NVCC12=
endif
CHECK_SCRIPTS := $(filter-out tests/tui/races.sh,$(TEST_SCRIPTS)) $(CHECK_TSAN)

# `make test T=NAME` builds and runs one test, which is a program or a script. With QUICK=1 it runs the short form of the
# test. If several tests have this name, all of them run.
TEST_NAMED = $(filter %/$(T),$(TEST_BIN) $(FUZZ_BIN)) $(filter %/$(T).sh,$(TEST_SCRIPTS))

test:
	@$(if $(T),,echo 'espalier: make test T=NAME: which test? It is a file of tests/' >&2 && exit 1)
	@$(if $(strip $(TEST_NAMED)),,echo 'espalier: tests/ has no test $(T)' >&2 && exit 1)
	@$(MAKE) --no-print-directory -j$$(nproc) $(BUILD)/espalier $(BUILD)/emu/libespalier-cuda.so $(filter $(BUILD)/%,$(TEST_NAMED))
	@$(TEST_ENV) tests/run $(if $(filter 1,$(QUICK)),--quick,--whole) $(TEST_NAMED)

# With QUICK=1, `make check` runs only short tests, without sanitizers. Use it while you write code.
LONG_BIN  = %/terminal %/cursor %/unsafe_text %/shutdown %/bad_tokenizer %/bad_recording %/cuda_failures %/inflate %/pictures \
            %/cuda_blocks %/cuda_variants %/tree_attention %/windows_agree
QUICK_BIN = $(filter-out $(LONG_BIN),$(filter $(BUILD)/tests/unit/%,$(TEST_BIN)))

ifeq ($(QUICK),1)
check: deps-check
	@$(MAKE) --no-print-directory -j$$(nproc) $(BUILD)/espalier $(DOT) $(BUILD)/emu/libespalier-cuda.so $(QUICK_BIN)
	@$(TEST_ENV) tests/run --quick tests/structure/arrows.sh $(QUICK_BIN)
else
check: deps-check
	@$(MAKE) --no-print-directory -j$$(nproc) $(CHECK_CUDA) all tests $(BUILD)/example $(CHECK_FUZZ)
	@$(if $(CHECK_ASAN),$(MAKE) --no-print-directory -j$$(nproc) $(ASAN) tests fuzz-tests)
	@$(if $(CHECK_TSAN),$(MAKE) --no-print-directory -j$$(nproc) $(TSAN) $(TSAN_BIN))
	@$(if $(CHECK_ARM),$(MAKE) --no-print-directory QUICK=1 arm-tests)
	@$(TEST_ENV) tests/run $(CHECK_SIZE) $(if $(CHECK_ARM),tests/arm/check.sh) $(filter-out $(TIMED_BIN),$(TEST_BIN)) $(CHECK_FUZZ) $(CHECK_SCRIPTS) $(CHECK_ASAN) \
	    $(CHECK_SIZE) --alone $(TIMED_BIN)
endif

# `make check-arm` builds the program and its tests for 64-bit ARM, and runs them in an emulator of the processor (qemu).
# The libraries for ARM are in ARM_ROOT. Some test programs are left out: tests that measure times in a terminal; tests that
# compare with CUDA, because the emulated GPU would take hours here; and tests that take half an hour or more. Tests of a
# memory limit are also left out, because qemu does not support memory limits.
ARM       := $(BUILD)/arm64
ARM_CC    ?= aarch64-linux-gnu-gcc
ARM_ROOT  ?= $(abspath $(ARM))/root
ARM_CPUS  := cortex-a72 $(if $(filter 1,$(QUICK)),,neoverse-n1) max
ARM_SET    = BUILD=$(ARM) CC='$(ARM_CC) --sysroot=$(abspath $(ARM_ROOT))' CFLAGS='-O2 -g1' NVCC= \
             PKG_CONFIG='tests/arm/pkg-config $(abspath $(ARM_ROOT))'
ARM_RUN    = qemu-aarch64 -L $(abspath $(ARM_ROOT))
ARM_HERE   = $(eval ARM_HERE := $(shell tests/arm/root $(ARM_ROOT) $(ARM_CC) && echo here))$(ARM_HERE)
ARM_NOT   := $(addprefix %/,terminal cursor unsafe_text shutdown pictures cuda_blocks cuda_failures cuda_streamed \
                 cuda_variants rows_agree tree_attention windows_agree lossless/chi_square lossless/greedy_identity)
# With QUICK=1, `make check-arm` runs only the tests of code that is compiled differently for ARM.
ARM_SHORT := $(addprefix %/,attention blocks gradients hidden_states kernels pool training_step)
ARM_BIN   := $(filter-out $(ARM_NOT) $(BUILD)/tests/emu/%,$(if $(filter 1,$(QUICK)),$(filter $(ARM_SHORT),$(TEST_BIN)),$(TEST_BIN)))
ARM_BIN   := $(ARM_BIN:$(BUILD)/%=$(ARM)/%)
# These scripts run espalier in the emulator. Scripts that make pictures are left out, because pictures need Graphviz.
ARM_SCRIPTS := $(if $(filter 1,$(QUICK)),,$(patsubst %,tests/cli/%.sh,bad_input drafters export generate models record samples stats) \
                 tests/tui/interface.sh)
# The results of these tests depend on the processor's instructions, so they run on each of $(ARM_CPUS).
ARM_EACH  := $(addprefix $(ARM)/tests/unit/,kernels blocks pool)

arm-tests: deps-arm
	@$(MAKE) $(if $(filter 1,$(V)),,-s) --no-print-directory -j$$(nproc) NVCC= $(BUILD)/espalier
	@$(MAKE) $(if $(filter 1,$(V)),,-s) --no-print-directory -j$$(nproc) $(ARM_SET) headless $(ARM)/espalier $(ARM_BIN)
	@printf '#!/bin/sh\nexec %s "$$@"\n' '$(ARM_RUN) $(abspath $(ARM))/espalier' >$(ARM)/emulated && \
	    chmod +x $(ARM)/emulated

check-arm: deps-arm
	@$(if $(filter aarch64-%,$(MACHINE)),echo 'espalier: this is an ARM machine: make check is its check' >&2 && exit 1)
	@$(if $(ARM_HERE),,exit 1)
	@$(MAKE) --no-print-directory arm-tests
	@$(TEST_ENV) ESPALIER=$(ARM)/emulated NATIVE=$(BUILD)/espalier BUILD=$(ARM) ESPALIER_TEST_RUNNER='$(ARM_RUN)' \
	    ESPALIER_CUDA_PLUGIN=none ARM_QUICK='$(filter 1,$(QUICK))' ARM_CPUS='$(ARM_CPUS)' ARM_EACH='$(ARM_EACH)' ESPALIER_TEST_SECONDS=3600 \
	    tests/run --quick tests/arm/processors.sh tests/arm/same_text.sh tests/arm/same_screens.sh \
	        $(filter-out $(ARM_EACH),$(ARM_BIN)) $(ARM_SCRIPTS)

asan: deps-check
	@$(MAKE) --no-print-directory -j$$(nproc) $(ASAN) tests fuzz-tests
	@$(TEST_ENV) tests/run --quick $(ASAN_BIN)

# ---------------------------------------------------------------- headless

# The headless program is for machines without ncurses, readline and Graphviz. Other libraries are linked statically, except
# for cJSON. Debian has no static version of cJSON, so its shared library is copied next to the program.
HEADLESS := $(BUILD)/headless
HEADLESS_OBJ = $(VIEW_OBJ) $(CLI_OBJ) $(call obj,tui/cli/no_interface.c)
CJSON_SO := libcjson.so.1

# The new copy of cJSON is renamed over the old one, because a running program may have the old file
# mapped into memory.
headless: $(HEADLESS)/espalier
	@cp -L "$$($(CC) -print-file-name=$(CJSON_SO))" $(HEADLESS)/$(CJSON_SO).new
	@mv $(HEADLESS)/$(CJSON_SO).new $(HEADLESS)/$(CJSON_SO)

$(HEADLESS)/espalier: $(HEADLESS_OBJ) $(BUILD)/libespalier.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(EXTRA) -rdynamic -static-libgcc -Wl,-rpath,'$$ORIGIN' -o $@ $^ \
	    -l:libpcre2-8.a -l:libutf8proc.a -l:libsqlite3.a -lcjson -lm -lpthread -ldl

# ---------------------------------------------------------------- the kit for a machine with a GPU

# The kit is one folder with everything that check-cuda and bench-cuda need. You can copy it to a machine that has only a
# driver. It has the programs with their libraries, the plugin, the built-in models, the files that the tests read, and a
# script that runs the tests and benchmarks.
KIT       := $(BUILD)/cuda-kit
KIT_TESTS := unit/rows unit/rows_agree unit/ratio unit/forward unit/step unit/batch_invariant unit/logits \
             unit/tree_attention unit/windows_agree unit/hidden_states unit/draft_heads \
             unit/cuda_variants unit/cuda_blocks unit/cuda_streamed unit/cuda_ranks \
             lossless/greedy_identity
KIT_LIBS  := -l:libpcre2-8.a -l:libutf8proc.a -l:libsqlite3.a -lcjson -lm -lpthread -ldl
# The kit's twenty programs share one library. If all kernels were linked into each program, each
# program would have a size of 2 MB.
KIT_SO    := $(KIT)/libespalier-kit.so
KIT_LINK   = $(CC) $(CFLAGS) $(EXTRA) -s -static-libgcc -o $@ $^ -Wl,-rpath,'$$ORIGIN/../..:$$ORIGIN/..:$$ORIGIN' \
             $(KIT_LIBS)

$(KIT_SO): $(LIB_OBJ)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(EXTRA) -s -shared -static-libgcc -Wl,-soname,$(@F) -o $@ $^ \
	    -Wl,-rpath,'$$ORIGIN' $(KIT_LIBS)

# The linker takes from this archive only the objects that a test needs.
$(BUILD)/libtests.a: $(TEST_OBJ) $(VIEW_OBJ)
	@rm -f $@
	$(call say,AR,$@)$(AR) rcs $@ $^

$(KIT)/tests/%: $(BUILD)/obj/tests/%.o $(BUILD)/libtests.a $(KIT_SO)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(KIT_LINK)

$(KIT)/tests/bench $(KIT)/tests/shapes: $(KIT)/tests/%: $(BUILD)/obj/tests/cuda/%.o $(KIT_SO)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(KIT_LINK)

$(KIT)/espalier: $(HEADLESS_OBJ) $(KIT_SO)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(KIT_LINK)

cuda-kit: $(KIT)/espalier $(KIT)/tests/bench $(KIT)/tests/shapes $(addprefix $(KIT)/tests/,$(KIT_TESTS)) $(CUDA_PLUGINS)
	$(if $(CUDA_PLUGINS),,$(error make cuda-kit needs an nvcc))
	@rm -f $(KIT)/libespalier-cuda*.so
	@cp $(CUDA_PLUGINS) $(KIT)
	@cp -L "$$($(CC) -print-file-name=$(CJSON_SO))" $(KIT)/$(CJSON_SO)
	@mkdir -p $(KIT)/share/espalier
	@cp -r engine/models $(KIT)/share/espalier
	@cp -r tests/vectors tests/prompts.txt $(KIT)/tests
	@cp tests/cuda/run tests/cuda/compare $(KIT)
	@du -sm $(KIT) | awk '$$1 > 60 { print "the kit has " $$1 " MB; it must not have more than 60 MB, so that it is easy to copy"; exit 1 }'
	@touch $(KIT)/ready

# If the kit was copied to this machine, it must not be built again.
KIT_MADE = $(if $(wildcard $(KIT)/ready),,cuda-kit)

check-cuda:
	@$(if $(KIT_MADE),$(MAKE) --no-print-directory -j$$(nproc) cuda-kit)
	@$(KIT)/run check

bench-cuda:
	@$(if $(KIT_MADE),$(MAKE) --no-print-directory -j$$(nproc) cuda-kit)
	@$(KIT)/run bench

# BENCH has the arguments of the benchmark. Example: BENCH='best 1 64 Q8_0 Q4_K' sets the
# instruction set, the number of threads, the size of the weights in megabytes, and the types.
bench-cpu: $(BUILD)/tests/cpu/bench
	@$< $(BENCH)

# Example: BENCH='64 256' sets the sizes of the trees.
bench-attention: $(BUILD)/tests/cpu/attention
	@$< $(BENCH)

# Example: BENCH='0.6 0.06 0.05 goodput linear:K=3' sets the temperature, the cost of a row, the
# cost of a draft pass, and the drafters.
bench-counted: $(BUILD)/tests/cpu/counted
	@$< $(BENCH)

# ---------------------------------------------------------------- fuzzing

# A fuzz harness is the file tests/fuzz/NAME.c, and its inputs are in tests/fuzz/corpus/NAME; make
# finds both. The archive fuzz-parts.a has all code, including tui/cli, which other tests do not
# link. The linker takes from it only the objects that a harness needs.
FUZZ_SRC   := $(filter-out $(if $(DOT),,tests/fuzz/picture.c),$(wildcard tests/fuzz/*.c))
FUZZ_BIN   := $(patsubst tests/%.c,$(BUILD)/tests/%,$(FUZZ_SRC))
FUZZ_MAIN  := $(BUILD)/obj/tests/fuzz/support/corpus.o
FUZZ_PARTS := $(VIEW_OBJ) $(APP_OBJ) $(CLI_OBJ) $(call obj,tests/toy.c tests/check.c tests/fuzz/support/fuzz.c)
FUZZ_PARTS := $(sort $(FUZZ_PARTS) $(if $(DOT),$(call obj,$(filter-out %/main.c,$(wildcard viz/dot/*.c)))))
FUZZ_PARTS := $(patsubst $(BUILD)/obj/%,$(BUILD)/obj/no_main/%,$(filter %/tests/check.o %/cli/main.o,$(FUZZ_PARTS))) \
              $(filter-out %/tests/check.o %/cli/main.o,$(FUZZ_PARTS))
FUZZ_FLAGS  = $(TUI_CFLAGS) $(if $(DOT),$(DOT_CFLAGS))

$(BUILD)/obj/tests/fuzz/%.o: DEFS += $(FUZZ_FLAGS)

# A harness has its own main(). Therefore the main() of the program becomes a local symbol.
$(BUILD)/obj/no_main/%.o: $(BUILD)/obj/%.o
	@mkdir -p $(@D)
	$(call say,COPY,$@)$(OBJCOPY) --localize-symbol=main $< $@

$(BUILD)/fuzz-parts.a: $(FUZZ_PARTS)
	@rm -f $@
	$(call say,AR,$@)$(AR) qcs $@ $^

$(FUZZ_BIN): $(BUILD)/tests/fuzz/%: tests/fuzz/%.c $(FUZZ_MAIN) $(BUILD)/fuzz-parts.a $(BUILD)/libespalier.a
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(ALL_CFLAGS) $(LIB_CFLAGS) $(FUZZ_FLAGS) -MF $@.d $(FUZZ_LINK) -rdynamic -o $@ $< $(FUZZ_MAIN) \
	    $(BUILD)/fuzz-parts.a $(BUILD)/libespalier.a \
	    $(AS_NEEDED) $(TUI_LIBS) $(if $(DOT),$(DOT_LIBS)) $(LIB_LIBS)

fuzz-tests: $(FUZZ_BIN)

# libFuzzer needs clang. Kernels read no files, so they are compiled as usual, without instrumentation.
FUZZ_SECONDS ?= 60
FUZZ         ?= *
CLANG        ?= clang
FUZZ_BUILD   := $(BUILD)/fuzz
FUZZ_MAKE     = BUILD=$(FUZZ_BUILD) CC='$(CLANG)' FUZZ_MAIN= CFLAGS='-O1 -g -fno-omit-frame-pointer' \
                EXTRA='-fsanitize=fuzzer-no-link,address,undefined \
                -fno-sanitize-recover=all' FUZZ_LINK=-fsanitize=fuzzer FUZZ_CC='$(CC)'
ifdef FUZZ_CC
$(BUILD)/obj/kernels/%.o: override CC := $(FUZZ_CC)
$(BUILD)/obj/kernels/%.o: override EXTRA :=
endif

fuzz:
	@if ! echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | \
	    $(CLANG) -fsanitize=fuzzer,address -x c -o /dev/null - 2>/dev/null; then \
	    echo "espalier: make fuzz needs clang and its sanitizers (Debian: clang and libclang-rt-*-dev);" \
	        "make check runs the inputs of tests/fuzz without them" >&2; \
	    exit 1; \
	fi
	@$(MAKE) --no-print-directory -j$$(nproc) $(FUZZ_MAKE) \
	    $(patsubst tests/%.c,$(FUZZ_BUILD)/tests/%,$(filter $(wildcard tests/fuzz/$(FUZZ).c),$(FUZZ_SRC)))
	@tests/fuzz/run $(FUZZ_SECONDS) $(FUZZ_BUILD) $(notdir $(basename $(filter $(wildcard tests/fuzz/$(FUZZ).c),$(FUZZ_SRC))))

# ---------------------------------------------------------------- install

INSTALL ?= install
SHARE   := $(DESTDIR)$(PREFIX)/share
PC_LIBS := libcjson libpcre2-8 libutf8proc

install: all
	$(INSTALL) -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(LIBDIR)/pkgconfig
	$(INSTALL) -m 755 $(BUILD)/espalier $(DOT) $(DESTDIR)$(PREFIX)/bin
	for header in $(PUBLIC_HEADERS); do \
	    $(INSTALL) -D -m 644 $$header $(DESTDIR)$(PREFIX)/include/espalier/$$header || exit 1; \
	done
	$(INSTALL) -m 644 $(BUILD)/libespalier.a $(DESTDIR)$(LIBDIR)
	$(INSTALL) -m 755 $(BUILD)/$(LIB_SO) $(DESTDIR)$(LIBDIR)/$(LIB_SO_NAME)
	ln -sf $(LIB_SO_NAME) $(DESTDIR)$(LIBDIR)/$(LIB_SO)
	$(if $(CUDA_PLUGINS),$(INSTALL) -m 755 $(CUDA_PLUGINS) $(DESTDIR)$(LIBDIR))
	printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR)' 'Name: espalier' \
	    'Description: tree-based speculative decoding of language models' 'Version: $(VERSION)' \
	    'Requires.private: $(PC_LIBS)' 'Cflags: -I$${prefix}/include/espalier -I$${prefix}/include/espalier/engine' \
	    'Libs: -L$${libdir} -lespalier' 'Libs.private: -lm -lpthread -ldl' \
	    > $(DESTDIR)$(LIBDIR)/pkgconfig/espalier.pc
	$(if $(RANKS),$(INSTALL) -d $(DESTDIR)$(PREFIX)/lib/espalier && $(INSTALL) -m 755 $(RANKS) $(DESTDIR)$(PREFIX)/lib/espalier)
	for page in man/*.[157]; do \
	    section=$${page##*.}; \
	    $(INSTALL) -d $(SHARE)/man/man$$section; \
	    $(INSTALL) -m 644 $$page $(SHARE)/man/man$$section; \
	done
	for model in engine/models/*/; do \
	    $(INSTALL) -d $(SHARE)/espalier/models/$$(basename $$model); \
	    $(INSTALL) -m 644 $$model* $(SHARE)/espalier/models/$$(basename $$model); \
	done
	$(INSTALL) -D -m 644 tui/package/completion.bash $(SHARE)/bash-completion/completions/espalier
	$(INSTALL) -D -m 644 tui/package/completion.zsh $(SHARE)/zsh/site-functions/_espalier
	$(INSTALL) -D -m 644 tui/package/completion.fish $(SHARE)/fish/vendor_completions.d/espalier.fish
	$(INSTALL) -D -m 644 tui/package/espalier.desktop $(SHARE)/applications/espalier.desktop
	$(INSTALL) -d $(SHARE)/espalier/themes
	$(INSTALL) -m 644 themes/*.theme $(SHARE)/espalier/themes
	$(INSTALL) -d $(SHARE)/espalier/suites
	$(INSTALL) -m 644 sessions/suites/*.suite sessions/suites/*.jsonl sessions/suites/README.md $(SHARE)/espalier/suites
	$(INSTALL) -d $(SHARE)/espalier/suites/results
	$(INSTALL) -m 644 sessions/suites/results/*.json $(SHARE)/espalier/suites/results
	$(INSTALL) -d $(SHARE)/espalier/sessions
	$(INSTALL) -d $(SHARE)/espalier/lessons
	$(INSTALL) -m 644 sessions/lessons/*.lesson sessions/lessons/README.md $(SHARE)/espalier/lessons
	$(INSTALL) -m 644 sessions/samples/*.esp.jsonl sessions/samples/README.md $(SHARE)/espalier/sessions
	$(if $(DESTDIR),,-ldconfig 2>/dev/null || true)

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/espalier $(DESTDIR)$(PREFIX)/bin/espalier-dot \
	    $(DESTDIR)$(LIBDIR)/libespalier.* $(DESTDIR)$(LIBDIR)/libespalier-cuda*.so \
	    $(DESTDIR)$(LIBDIR)/pkgconfig/espalier.pc
	for page in man/*.[157]; do rm -f $(SHARE)/man/man$${page##*.}/$$(basename $$page); done
	rm -f $(SHARE)/bash-completion/completions/espalier $(SHARE)/zsh/site-functions/_espalier \
	    $(SHARE)/fish/vendor_completions.d/espalier.fish $(SHARE)/applications/espalier.desktop
	rm -rf $(SHARE)/espalier $(DESTDIR)$(PREFIX)/include/espalier $(DESTDIR)$(PREFIX)/lib/espalier

include tui/package/package.mk

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -type f -name '*.d' 2>/dev/null)
