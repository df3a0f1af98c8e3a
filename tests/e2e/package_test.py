"""What packages are made of: which GPUs their CUDA code is for, what their program may need, and the .deb."""

import importlib.util
import os
import pathlib
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


def load_script(name):
    spec = importlib.util.spec_from_file_location(name, SOURCE_DIR / "scripts" / "package" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@test
def a_portable_program_needs_glibc_alone():
    check = load_script("check_program")
    check.self_test()
    expect_equal(check.problems(["libc.so.6", "libm.so.6", "libpthread.so.0"], {(2, 31)}, (2, 31)), [], "problems")
    found = check.problems(["libc.so.6", "libstdc++.so.6"], {(2, 17), (2, 32)}, (2, 31))
    expect_equal(found, ["needs libstdc++.so.6, which is not part of glibc", "needs glibc 2.32"], "problems")


@test
def the_check_reads_real_programs():
    if not (shutil.which("readelf") and shutil.which("objdump")):
        skip("no binutils")
    script = SOURCE_DIR / "scripts" / "package" / "check_program.py"
    for glibc, code in (("2.0", 1), ("9.0", 0)):
        done = subprocess.run([script, "/bin/sh", "--glibc", glibc], capture_output=True, text=True, check=False)
        expect_equal(done.returncode, code, f"exit code with glibc {glibc}: {done.stdout}{done.stderr}")


# The files of the .deb are made up, so that these tests need no build.
FILES = {"bin/infer": "program", "lib/systemd/system/infer.service": "unit", "share/doc/infer/CHANGELOG.md": "changes",
         "share/doc/infer/LICENSE": "license", "share/doc/infer/third-party-licenses.txt": "licenses",
         "share/man/man1/infer.1": "page", "share/zsh/site-functions/_infer": "#compdef infer"}


def make_deb(folder):
    root = pathlib.Path(folder, "root")
    for name, text in FILES.items():
        path = root / "usr" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "usr/bin/infer").chmod(0o755)
    settings = root / "etc/default/infer"
    settings.parent.mkdir(parents=True)
    settings.write_text("INFER_MODEL=\n")
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "86400", "MAINTAINER": "A Tester <tester@example.org>"}
    done = subprocess.run([SOURCE_DIR / "scripts/package/make_deb.sh", "amd64", "1.2.3", root, folder],
                          capture_output=True, text=True, check=False, env=environment, cwd=SOURCE_DIR)
    expect(done.returncode == 0, "make_deb.sh", done.stdout + done.stderr)
    return pathlib.Path(folder, "infer_1.2.3-1_amd64.deb")


def dpkg_deb(*arguments):
    return subprocess.run(["dpkg-deb", *arguments], capture_output=True, text=True, check=True).stdout


@test
def contents_of_the_deb():
    if not shutil.which("dpkg-deb"):
        skip("no dpkg-deb")
    with tempfile.TemporaryDirectory() as folder:
        deb = make_deb(folder)
        fields = dict(line.split(": ", 1) for line in dpkg_deb("-f", deb).splitlines() if not line.startswith(" "))
        expect_equal((fields["Depends"], fields["Version"], fields["Architecture"], fields["Maintainer"]),
                     ("libc6 (>= 2.31)", "1.2.3-1", "amd64", "A Tester <tester@example.org>"), "fields")
        listing = dpkg_deb("-c", deb)
        expect(all(" root/root " in line for line in listing.splitlines()), "owners", listing)
        names = {line.split()[-1] for line in listing.splitlines() if not line.startswith("d")}
        expected = {"./usr/bin/infer", "./lib/systemd/system/infer.service", "./etc/default/infer",
                    "./usr/share/man/man1/infer.1.gz", "./usr/share/zsh/vendor-completions/_infer"}
        expected |= {f"./usr/share/doc/infer/{name}"
                     for name in ("copyright", "changelog.gz", "changelog.Debian.gz", "third-party-licenses.txt")}
        expect_equal(expected - names, set(), "missing files")
        expect_equal(dpkg_deb("-I", deb, "conffiles").split(), ["/etc/default/infer"], "conffiles")
        sums = {line.split()[1] for line in dpkg_deb("-I", deb, "md5sums").splitlines()}
        expect_equal(sums, {name[2:] for name in names}, "files with a checksum")


@test
def the_same_files_make_the_same_deb():
    if not shutil.which("dpkg-deb"):
        skip("no dpkg-deb")
    contents = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            contents.append(make_deb(folder).read_bytes())
    expect(contents[0] == contents[1], "the packages differ")


main()
