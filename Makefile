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
ALL_CFLAGS = $(STRICT) $(WARN) $(INCLUDE) $(CFLAGS) $(EXTRA) -MMD -MP

LIB_PKGS := libcjson libpcre2-8 libutf8proc
TUI_PKGS := ncursesw readline
LIB_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(LIB_PKGS))
LIB_LIBS   = $(shell $(PKG_CONFIG) --libs $(LIB_PKGS)) -lm -lpthread -ldl
TUI_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(TUI_PKGS))
TUI_LIBS   = $(shell $(PKG_CONFIG) --libs $(TUI_PKGS))

# ---------------------------------------------------------------- sources

# kernels/cpu/isa/*.c is compiled once per instruction set; which one runs is decided at start.
ifneq ($(filter x86_64 amd64,$(shell uname -m)),)
ISAS := generic avx2 avx512
else
ISAS := generic
endif
ISA_FLAGS_generic :=
ISA_FLAGS_avx2    := -mavx2 -mfma -mf16c
ISA_FLAGS_avx512  := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c

ISA_SRC := $(wildcard kernels/cpu/isa/*.c)
LIB_SRC := $(wildcard engine/*.c engine/model/*.c engine/drafters/*.c engine/verifiers/*.c kernels/*.c kernels/cpu/*.c)
LIB_SRC := $(filter-out engine/example.c,$(LIB_SRC))
APP_SRC := $(wildcard sessions/*.c viz/*.c tui/cli/*.c)
TUI_SRC := $(wildcard tui/*.c tui/panes/*.c tui/commands/*.c)

obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
ISA_OBJ := $(foreach isa,$(ISAS),$(patsubst %.c,$(BUILD)/obj/%.$(isa).o,$(ISA_SRC)))
LIB_OBJ := $(call obj,$(LIB_SRC)) $(ISA_OBJ)
APP_OBJ := $(call obj,$(filter-out tui/cli/no_interface.c,$(APP_SRC)))
TUI_OBJ := $(call obj,$(TUI_SRC))
TEST_SRC := $(wildcard tests/unit/*.c tests/lossless/*.c)
TEST_BIN := $(patsubst tests/%.c,$(BUILD)/tests/%,$(TEST_SRC))
TEST_SCRIPTS := $(wildcard tests/cli/*.sh tests/tui/*.sh)

.PHONY: all demo check asan headless install uninstall clean help deps deps-check tests

all: $(BUILD)/espalier $(BUILD)/libespalier.a $(BUILD)/libespalier.so

help:
	@echo 'make              build $(BUILD)/espalier and libespalier'
	@echo 'make demo         install missing packages, build, open the interface on the built-in pair'
	@echo 'make check        all tests, then the unit and lossless tests under sanitizers'
	@echo 'make asan         only the sanitizer pass'
	@echo 'make headless     $(BUILD)/headless/espalier: no ncurses, readline or graphviz'
	@echo 'make install      to $$(DESTDIR)$$(PREFIX), PREFIX=$(PREFIX)'
	@echo 'make uninstall    remove what install put there'
	@echo 'make clean        remove $(BUILD)'
	@echo 'ESPALIER_NO_APT=1 keeps make from installing Debian packages'

# ---------------------------------------------------------------- compiling

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LIB_CFLAGS) $(if $(filter tui/%,$<),$(TUI_CFLAGS)) -c -o $@ $<

define isa_rule
$(BUILD)/obj/%.$(1).o: %.c
	@mkdir -p $$(@D)
	$$(CC) $$(ALL_CFLAGS) -O3 $$(ISA_FLAGS_$(1)) -DESP_ISA=$(1) -c -o $$@ $$<
endef
$(foreach isa,$(ISAS),$(eval $(call isa_rule,$(isa))))

$(BUILD)/obj/kernels/cpu/%.o: EXTRA += $(foreach isa,$(ISAS),-DESP_HAVE_$(isa))
# Where the built-in pair and the themes are once installed; a build tree finds its own first.
$(BUILD)/obj/engine/paths.o: EXTRA += -DESP_DATA_DIR='"$(PREFIX)/share/espalier"'

$(BUILD)/libespalier.a: $(LIB_OBJ)
	@rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/libespalier.so: $(LIB_OBJ) engine/libespalier.map
	$(CC) $(CFLAGS) $(EXTRA) -shared -fopenmp -Wl,-soname,libespalier.so.0 \
	    -Wl,--version-script=engine/libespalier.map -o $@ $(LIB_OBJ) $(LIB_LIBS)

$(BUILD)/espalier: $(APP_OBJ) $(TUI_OBJ) $(BUILD)/libespalier.a
	$(CC) $(CFLAGS) $(EXTRA) -fopenmp -rdynamic -o $@ $^ $(TUI_LIBS) $(LIB_LIBS)

$(BUILD)/tests/%: tests/%.c tests/check.c $(APP_OBJ) $(BUILD)/libespalier.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LIB_CFLAGS) -Itests -MF $@.d -o $@ $< tests/check.c \
	    $(filter-out %/tui/cli/%.o,$(APP_OBJ)) $(BUILD)/libespalier.a $(LIB_LIBS)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
