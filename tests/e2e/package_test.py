"""Which GPUs the CUDA code of a package is for, with compilers of different ages. Runs CMake, not the program."""

import shutil
import subprocess
import tempfile

from harness import SOURCE_DIR, expect, expect_equal, main, skip, test

NVCC_12_0 = "sm_50 sm_52 sm_53 sm_60 sm_61 sm_62 sm_70 sm_72 sm_75 sm_80 sm_86 sm_87 sm_89 sm_90"
NVCC_12_8 = NVCC_12_0 + " sm_100 sm_101 sm_120"
NVCC_13_0 = "sm_75 sm_80 sm_86 sm_87 sm_88 sm_89 sm_90 sm_100 sm_110 sm_103 sm_120 sm_121"


def architectures(codes):
    if not shutil.which("cmake"):
        skip("no cmake")
    with tempfile.NamedTemporaryFile("w", suffix=".cmake") as script:
        script.write(f'cmake_minimum_required(VERSION 3.22)\ninclude({SOURCE_DIR}/backends/cuda/architectures.cmake)\n'
                     f'package_architectures(found "{";".join(codes.split())}")\nmessage("${{found}}")\n')
        script.flush()
        return subprocess.run(["cmake", "-P", script.name], capture_output=True, text=True, check=False)


@test
def code_for_all_that_nvcc_knows_and_ptx_of_the_newest():
    for codes, expected in ((NVCC_12_0, "75-real;80-real;86-real;89-real;90-real;90-virtual"),
                            (NVCC_12_8, "75-real;80-real;86-real;89-real;90-real;100-real;120-real;120-virtual"),
                            (NVCC_13_0, "75-real;80-real;86-real;89-real;90-real;100-real;120-real;120-virtual")):
        done = architectures(codes)
        expect_equal((done.returncode, done.stderr.strip()), (0, expected), codes)


@test
def a_compiler_that_knows_none_is_refused():
    done = architectures("sm_50 sm_70")
    expect(done.returncode != 0 and "no compute capability" in done.stderr, "refused", done.stderr)


main()
