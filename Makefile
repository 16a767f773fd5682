# librelax: everything is built by this one file. `make help` lists the targets.
#
#   CC=gcc|clang   B=build (where outputs go)   SAN=asan|tsan (own outputs under $(B)/$(SAN))
#   ROOMS="base core expr"   builds and tests a part of the tree
#   WRAP=1         make lint breaks the lines that are too wide, first
#   T="base core"            the unit tests that check-unit runs (default: all)

# The rooms of src/, in the order of the layers: a file may include its own room and rooms before it (tests/lint.py).
ALL_ROOMS := base core pkg rt expr tir graph op interp sched pass codegen import api tools
ROOMS     := $(ALL_ROOMS)
RT_ROOMS  := base core pkg rt

VERSION := 0.1.0
SO      := 0

ifeq ($(origin CC),default)
CC := gcc
endif
B      ?= build
O      := $(B)$(if $(SAN),/$(SAN))
PREFIX ?= /usr/local
T      ?= *
ORACLE ?= ../shared/oracle
PY     := build/venv/bin/python
newest = $(firstword $(foreach v,22 21 20 19,$(shell command -v $(1)-$(v) 2>/dev/null)) $(2))
LLVM_CONFIG ?= $(call newest,llvm-config)
CLANG       ?= $(call newest,clang,clang)

MODEL   ?= build/models/qwen2.5-coder-0.5b-instruct.gguf
PROMPT  ?= Write a C function that returns the greatest common divisor of two integers.
MODELS  := build/models/qwen2.5-coder-0.5b-instruct.gguf build/models/gemma-3-270m.gguf
FUZZ_SECONDS ?= 60

# --- flags ---
# Aliasing: containers hand out void * to typed storage (rx_push). Contraction: a*b+c rounds twice on every machine.
WARN   := -Wall -Wextra -Werror
BASE   := -std=c17 $(WARN) -Isrc -Iinclude -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections \
          -fno-strict-aliasing -ffp-contract=off -ffile-prefix-map=$(CURDIR)=. -g -MMD -MP
# kernels come from LLVM without the type hash that clang's check of function pointers reads
NO_HASH = $(if $(findstring clang,$(CC)),-fno-sanitize=function)
SAN_asan = -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer $(NO_HASH)
SAN_tsan := -O1 -fsanitize=thread -fno-omit-frame-pointer
SAN_fuzz := -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined \
            -fno-sanitize=function -fno-omit-frame-pointer
SANFLAGS := $(SAN_$(SAN))
OPT    := $(if $(SAN),$(SANFLAGS),-O2)
RT_OPT := $(if $(SAN),$(SANFLAGS),-Os)
LINK   := $(SANFLAGS) -Wl,--gc-sections -Wl,--as-needed
SOLINK := $(LINK) -shared -Wl,-z,relro,-z,now -Wl,--exclude-libs,ALL $(if $(SAN),,-Wl,-z,defs)
RT_LIBS  := -lffi -lm -lpthread -ldl
LIBS     := -lpcre2-8 $(RT_LIBS)

# --- sources ---
find_c = $(sort $(foreach d,$(1),$(shell find $(d) -name '*.c' 2>/dev/null)))
# external libraries: lib/<name>/rt*.c is the run-time half, the rest belongs to the compiler
LIB_SRC  := $(filter-out src/codegen/llvm/%,$(call find_c,$(addprefix src/,$(filter-out tools,$(ROOMS))))) \
            $(if $(filter codegen,$(ROOMS)),$(call find_c,lib))
RT_SRC   := $(call find_c,$(addprefix src/,$(filter $(ROOMS),$(RT_ROOMS)))) $(if $(filter api,$(ROOMS)),$(wildcard \
            src/api/rt_*.c src/api/core_*.c)) $(if $(filter rt,$(ROOMS)),$(sort $(wildcard lib/*/rt*.c)))
LLVM_SRC := $(if $(filter codegen,$(ROOMS)),$(call find_c,src/codegen/llvm))
TOOL_SRC := $(if $(filter tools,$(ROOMS)),$(call find_c,src/tools))

LIB_OBJ  := $(LIB_SRC:%.c=$(O)/obj/%.o)
RT_OBJ   := $(RT_SRC:%.c=$(O)/obj-rt/%.o)
LLVM_OBJ := $(LLVM_SRC:%.c=$(O)/obj/%.o)
TOOL_OBJ := $(TOOL_SRC:%.c=$(O)/obj/%.o)
INTERNAL := $(O)/obj/internal.a

TESTS     := $(patsubst tests/unit/%.c,$(O)/test/%,$(sort $(foreach t,$(T),$(wildcard tests/unit/test_$(t).c))))
ORACLE_SRC := $(sort $(wildcard tests/unit/oracle*.c))
ORACLE_BIN := $(if $(ORACLE_SRC),$(O)/test/oracle)
FUZZERS   := $(patsubst tests/fuzz/%.c,%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))

SOS := $(if $(LIB_SRC),$(O)/lib/librelax.so) $(if $(RT_SRC),$(O)/lib/librelax_rt.so) \
       $(if $(LLVM_SRC),$(if $(LLVM_CONFIG),$(O)/lib/librelax_llvm.so))
ARCHIVES := $(if $(LIB_SRC),$(O)/lib/librelax.a) $(if $(RT_SRC),$(O)/lib/librelax_rt.a)
BINS := $(if $(TOOL_SRC),$(O)/bin/relax)

# --- building; V=1 shows the commands ---
Q   := $(if $(V),,@)
say  = @$(if $(V),:,echo "  $(1) $(patsubst $(CURDIR)/%,%,$(2))" >&2)
.PHONY: all help libs tests deps models demo bless check check-unit check-asan check-tsan oracle bench lint fuzz docs install clean
.DELETE_ON_ERROR:
all: libs $(BINS)
libs: $(SOS) $(ARCHIVES)
	$(if $(LLVM_CONFIG),,@echo "llvm-config-22 to -19 not found: built without the code generator (make deps installs it)")
tests: $(TESTS) $(ORACLE_BIN)

help:
	@echo "deps all models demo bless check check-unit check-asan check-tsan oracle bench lint fuzz docs install clean"

$(O)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,cc   ,$<)
	$(Q)$(CC) $(BASE) $(OPT) $(CFLAGS) $(XFLAGS) -c $< -o $@
$(O)/obj-rt/%.o: %.c
	@mkdir -p $(@D)
	$(call say,cc-rt,$<)
	$(Q)$(CC) $(BASE) $(RT_OPT) $(CFLAGS) $(XFLAGS) -c $< -o $@
$(LLVM_OBJ): XFLAGS = $(if $(LLVM_CONFIG),-isystem $(shell $(LLVM_CONFIG) --includedir))
$(TOOL_OBJ): XFLAGS = -std=gnu17

# changes when the set of objects does (another ROOMS, a file that went)
LIST := $(O)/obj/list
FORCE:
$(LIST): FORCE
	@mkdir -p $(@D) && echo '$(LIB_OBJ) $(RT_OBJ)' | cmp -s - $@ || echo '$(LIB_OBJ) $(RT_OBJ)' > $@

$(INTERNAL): $(LIB_OBJ) $(LIST)
	@mkdir -p $(@D) && rm -f $@
	$(call say,ar   ,$@)
	$(Q)ar rcsD $@ $(LIB_OBJ)

# a static library of one object: internal names are made local, so that hosts see relax_* only
$(O)/lib/librelax.a: $(LIB_OBJ) $(LIST)
$(O)/lib/librelax_rt.a: $(RT_OBJ) $(LIST)
$(O)/lib/%.a:
	@mkdir -p $(@D) && rm -f $@
	$(call say,ar   ,$@)
	$(Q)$(CC) -nostdlib -r $(filter %.o,$^) -o $(@:.a=.o) && objcopy --localize-hidden $(@:.a=.o) && ar rcsD $@ $(@:.a=.o) && rm $(@:.a=.o)

# lib<name>.so -> lib<name>.so.0 (the SONAME) -> lib<name>.so.0.1.0
shared = $(CC) $(SOLINK) -Wl,-soname,$(@F).$(SO) -Wl,--version-script=src/relax.map $(1) -o $@.$(VERSION) $(2) && \
         ln -sf $(@F).$(VERSION) $@.$(SO) && ln -sf $(@F).$(SO) $@
$(O)/lib/librelax.so: $(LIB_OBJ) $(LIST) src/relax.map
	@mkdir -p $(@D)
	$(call say,so   ,$@)
	$(Q)$(call shared,$(LIB_OBJ),$(LIBS))
$(O)/lib/librelax_rt.so: $(RT_OBJ) $(LIST) src/relax.map
	@mkdir -p $(@D)
	$(call say,so   ,$@)
	$(Q)$(call shared,$(RT_OBJ),$(RT_LIBS))
# private: opened by librelax when the first CPU target is built, never unloaded (LLVM keeps process-wide state); takes its own copies of what it uses from base/ to tir/
$(O)/lib/librelax_llvm.so: $(LLVM_OBJ) $(INTERNAL) src/relax_llvm.map
	@mkdir -p $(@D)
	$(call say,so   ,$@)
	$(Q)$(CC) $(SOLINK) -Wl,-z,nodelete -Wl,--version-script=src/relax_llvm.map $(LLVM_OBJ) $(INTERNAL) -o $@ \
	  $(shell $(LLVM_CONFIG) --ldflags) -Wl,-rpath,$(shell $(LLVM_CONFIG) --libdir) $(shell $(LLVM_CONFIG) --libs) $(LIBS)

$(O)/bin/relax: $(TOOL_OBJ) $(O)/lib/librelax.so
	@mkdir -p $(@D)
	$(call say,link ,$@)
	$(Q)$(CC) $(LINK) $(TOOL_OBJ) -o $@ -L$(O)/lib -lrelax -Wl,-rpath,'$$ORIGIN/../lib' -lm

$(O)/test/obj/%.o: tests/unit/%.c
	@mkdir -p $(@D)
	$(call say,cc   ,$<)
	$(Q)$(CC) $(BASE) -std=gnu17 -Itests/unit $(if $(SAN),$(SANFLAGS),-O1) $(CFLAGS) -c $< -o $@
TESTLIBS := -lcmocka -lcjson $(LIBS)
$(O)/test/oracle: $(ORACLE_SRC:tests/unit/%.c=$(O)/test/obj/%.o) $(INTERNAL)
	$(call say,link ,$@)
	$(Q)$(CC) $(LINK) $^ -o $@ $(TESTLIBS)
# plugins of the tests: shared objects that include the public headers and link nothing
PLUGINS := $(patsubst tests/plugins/%.c,$(O)/test/plugins/%.so,$(sort $(wildcard tests/plugins/*.c))) $(O)/test/plugins/example.so
plugin_so = @mkdir -p $(@D) && $(CC) -std=c99 $(WARN) -O1 -shared -fPIC -fvisibility=hidden -Iinclude $< -o $@
$(O)/test/plugins/%.so: tests/plugins/%.c tests/plugins/plugin.h include/relax.h include/relax_plugin.h
	$(plugin_so)
$(O)/test/plugins/example.so: examples/plugin/plugin.c include/relax.h include/relax_plugin.h
	$(plugin_so)
$(O)/test/test_plugin: | $(PLUGINS)
$(O)/test/%: $(O)/test/obj/%.o $(INTERNAL)
	$(call say,link ,$@)
	$(Q)$(CC) $(LINK) $^ -o $@ $(TESTLIBS)
.SECONDARY:

# --- installing what the build needs; models ---
deps:
	@.ci/deps
$(PY): bindings/python/requirements-dev.txt
	@.ci/deps
models: | $(PY)
	@$(PY) bindings/python/fetch_models.py build/models
$(MODELS): | $(PY)
	@$(PY) bindings/python/fetch_models.py build/models $(@F)
demo:
	@$(MAKE) --no-print-directory deps
	@$(MAKE) --no-print-directory all $(filter $(MODELS),$(MODEL))
	$(B)/bin/relax chat $(MODEL) -p "$(PROMPT)" --stats

# --- checking: tests/run prints one closing line "N passed, N failed, N skipped" ---
check:
	@$(MAKE) --no-print-directory deps
	@$(MAKE) --no-print-directory all tests
	@tests/run --lint $(if $(ORACLE_BIN),--oracle $(ORACLE_BIN)) --pytest $(PY) $(TESTS)
# what passes make of the modules in tests/golden is taken to be right from now on: read the diff
bless: $(O)/test/test_golden
	@RELAX_BLESS=1 $< > /dev/null
check-unit: libs tests
	@tests/run $(TESTS)
check-asan:
	@$(MAKE) --no-print-directory SAN=asan check-unit
# the runtime's tests and what stands below it
check-tsan:
	@$(MAKE) --no-print-directory SAN=tsan T="base core rt*" check-unit
oracle: libs $(ORACLE_BIN)
	@$(if $(ORACLE_BIN),RELAX_ORACLE=$(ORACLE) $(ORACLE_BIN),echo "no oracle program")
lint:
	@python3 tests/lint.py $(if $(WRAP),--wrap $(call newest,clang-format,clang-format)) --rooms "$(ALL_ROOMS)" --rt-rooms "$(RT_ROOMS)" $(wildcard $(O)/lib/librelax.so $(O)/lib/librelax_rt.so)
bench: all
	@bench/run --build $(B)
docs:
	@python3 docs/build.py $(B)/docs

ifeq ($(SAN),fuzz)
$(O)/fuzz/%: tests/fuzz/%.c $(INTERNAL)
	@mkdir -p $(@D)
	$(call say,link ,$@)
	$(Q)$(CC) $(BASE) -std=gnu17 $(SANFLAGS) -fsanitize=fuzzer $< $(INTERNAL) -o $@ $(LIBS)
fuzz-bins: $(FUZZERS:%=$(O)/fuzz/%)
endif
fuzz:
	@$(MAKE) --no-print-directory SAN=fuzz CC=$(CLANG) fuzz-bins
	@tests/run --fuzz $(FUZZ_SECONDS) $(FUZZERS:%=$(B)/fuzz/fuzz/%)

# --- installing ---
pc = printf 'prefix=%s\nName: %s\nDescription: %s\nVersion: %s\nCflags: -I$${prefix}/include\nLibs: -L$${prefix}/lib -l%s\n' \
     '$(PREFIX)' '$(1)' '$(2)' '$(VERSION)' '$(1)' > $(DESTDIR)$(PREFIX)/lib/pkgconfig/$(1).pc
install: all
	install -d $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/bin
	install -m 644 include/*.h $(DESTDIR)$(PREFIX)/include
	install -m 644 $(ARCHIVES) $(DESTDIR)$(PREFIX)/lib
	cp -P $(O)/lib/*.so* $(DESTDIR)$(PREFIX)/lib
	$(if $(BINS),install -m 755 $(BINS) $(DESTDIR)$(PREFIX)/bin)
	$(call pc,relax,ahead-of-time compiler for machine learning with symbolic shapes)
	$(call pc,relax_rt,runtime of librelax alone)

clean:
	rm -rf $(B)/obj $(B)/obj-rt $(B)/lib $(B)/bin $(B)/test $(B)/asan $(B)/tsan $(B)/fuzz

-include $(shell find $(O)/obj $(O)/obj-rt $(O)/test -name '*.d' 2>/dev/null)
