"""The program is one binary: it may load only the C and C++ runtime, and cpp-httplib with its dependencies, which
Debian ships as shared objects only. Everything else is linked in."""

import re

from harness import BINARY, Failure, expect_equal, main, run, skip, test

ALLOWED = re.compile(r"linux-vdso|ld-linux-[\w-]+|libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s"
                     r"|libcpp-httplib|libssl|libcrypto|libz|libbrotli(dec|enc|common)")


def libraries(ldd_output):
    """The names ldd lists, without folder and version: `libm.so.6 => /lib/libm.so.6 (0x..)` is `libm`."""
    names = set()
    for line in ldd_output.splitlines():
        if "statically linked" not in line and line.strip():
            names.add(line.split()[0].rsplit("/", 1)[-1].split(".so")[0])
    return names


def unexpected(names):
    return sorted(name for name in names if not ALLOWED.fullmatch(name))


@test
def only_the_runtime_is_loaded():
    result = run(BINARY, program="ldd")
    if result.code != 0:
        raise Failure(f"ldd failed\n{result}")
    if "libasan" in result.out or "libubsan" in result.out:
        skip("the program is built with sanitizers")
    expect_equal(unexpected(libraries(result.out)), [], "libraries beyond those")


@test
def an_extra_library_is_noticed():
    listing = ("\tlinux-vdso.so.1 (0x7ff)\n\tlibfmt.so.9 => /usr/lib/libfmt.so.9 (0x7f0)\n"
               "\t/lib64/ld-linux-x86-64.so.2 (0x7f1)\n")
    expect_equal(unexpected(libraries(listing)), ["libfmt"])


main()
