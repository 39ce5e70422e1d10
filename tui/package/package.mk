# package.mk - rules for a source archive, Debian packages and a static program.

DIST := espalier-$(VERSION)

# Makes an archive of the last commit, with the models, and its hash. The source in the archive builds without git.
dist: $(BUILD)/$(DIST).tar.xz

$(BUILD)/$(DIST).tar.xz: always
	@mkdir -p $(@D)
	@git archive --prefix=$(DIST)/ HEAD | xz -T0 >$@.new && mv $@.new $@ || \
	    { rm -f $@.new; echo "espalier: make dist needs git and a checkout" >&2; exit 1; }
	@cd $(@D) && sha256sum $(@F) >$(@F).sha256 && cat $(@F).sha256

# Makes the packages of debian/: espalier, libespalier0, libespalier-dev and, if there is nvcc, espalier-cuda. They are built
# from the source archive, so they do not contain changes that are not committed. The same commit gives the same bytes.
DEB_DEBS := $(BUILD_DEBS) build-essential debhelper dpkg-dev fakeroot git xz-utils

deb:
	$(call install_debs,$(DEB_DEBS))
	@$(MAKE) --no-print-directory $(BUILD)/$(DIST).tar.xz
	@rm -rf $(BUILD)/deb && mkdir -p $(BUILD)/deb && tar -xJf $(BUILD)/$(DIST).tar.xz -C $(BUILD)/deb
	@cd $(BUILD)/deb/$(DIST) && mv tui/package/debian debian && \
	    dpkg-buildpackage --no-sign --build=binary $(if $(NVCC),--build-profiles=pkg.espalier.cuda) \
	    $(DEB_OPTIONS) >../build.log 2>&1 || { tail -n 20 ../build.log; exit 1; }
	@rm -r $(BUILD)/deb/$(DIST) && ls $(BUILD)/deb/*.deb

# Makes the headless program as one file. It needs no library, and no folder except the folder of the models. A static program
# cannot load a plugin, so it has no CUDA backend.
STATIC := $(BUILD)/static

static:
	$(call install_debs,$(BUILD_DEBS) dpkg-dev)
	@$(MAKE) --no-print-directory BUILD=$(STATIC) NVCC= $(STATIC)/espalier-static
	@ls -l $(STATIC)/espalier-static

$(BUILD)/cjson/libcjson.a:
	tui/package/cjson $(@D)

$(BUILD)/espalier-static: $(HEADLESS_OBJ) $(call obj,kernels/no_plugin.c) $(BUILD)/libespalier.a $(BUILD)/cjson/libcjson.a
	$(call say,LINK,$@)$(LINK) -s -static -o $@ $(filter-out %/libcjson.a,$^) -L$(BUILD)/cjson -lsqlite3 $(LIB_LIBS)
