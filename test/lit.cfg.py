# Configuration of the lit tests; lit.site.cfg.py in the build tree loads it.
import os

import lit.formats
from lit.llvm import llvm_config
from lit.llvm.subst import FindTool, ToolSubst

config.name = "gtp"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "lib", "unit"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.gtp_obj_root, "test")

# A variable of one function cannot be matched in the next.
config.environment["FILECHECK_OPTS"] = "-enable-var-scope"
llvm_config.with_system_environment(["ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"])
llvm_config.use_default_substitutions()

config.substitutions.append(("%gtp_tools", config.gtp_tools_dir))

# GTP_CHECK_ROUNDTRIP=1 makes every run of gtp-opt a test of printers and parsers.
roundtrip = ["--verify-roundtrip"] if os.environ.get("GTP_CHECK_ROUNDTRIP") else []
llvm_config.add_tool_substitutions(
    [
        ToolSubst("gtp-opt", FindTool("gtp-opt"), extra_args=roundtrip, unresolved="fatal"),
        ToolSubst("gtp-lsp-server", FindTool("gtp-lsp-server"), unresolved="fatal"),
        ToolSubst("print-kernels", FindTool("print-kernels"), unresolved="fatal"),
        ToolSubst("gtp-run", FindTool("gtp-run"), unresolved="ignore"),
    ],
    [config.gtp_tools_dir, config.llvm_tools_dir],
)
