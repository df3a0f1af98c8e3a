"""`cmake --install` and scripts/install.sh: what goes where, with PREFIX and DESTDIR, and that uninstalling removes it."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from harness import BINARY, PATIENCE, SOURCE_DIR, expect, expect_equal, main, run, skip, test
from models import succeeded

BUILD = pathlib.Path(BINARY).resolve().parent
PROGRAM_FILES = {"bin/infer", "share/bash-completion/completions/infer", "share/zsh/site-functions/_infer",
                 "share/fish/vendor_completions.d/infer.fish", "lib/systemd/system/infer.service",
                 "share/doc/infer/README.md", "share/doc/infer/LICENSE", "share/doc/infer/CHANGELOG.md",
                 "share/man/man1/infer.1", "share/man/man1/infer-serve.1"}


def call(*command, **environment):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=PATIENCE,
                          cwd=SOURCE_DIR, env={**os.environ, **environment})


def make_files():
    """Builds what is installed besides the program; skips where the program was not built by CMake here."""
    if not shutil.which("cmake") or not (BUILD / "CMakeCache.txt").exists():
        skip("not a build folder")
    if not (BUILD / "packaging" / "man1" / "infer.1").exists():
        done = call("cmake", "--build", BUILD, "--target", "infer_package")
        expect(done.returncode == 0, "build", done.stdout + done.stderr)


def install(root, prefix):
    make_files()
    done = call("cmake", "--install", BUILD, "--prefix", prefix, DESTDIR=root)
    expect(done.returncode == 0, "install", done.stdout + done.stderr)
    return {str(path.relative_to(root)) for path in pathlib.Path(root).rglob("*") if path.is_file()}


@test
def tree_below_a_prefix():
    with tempfile.TemporaryDirectory() as root:
        files = install(root, "/usr/local")
        expect_equal({f"usr/local/{name}" for name in PROGRAM_FILES} - files, set(), "missing files")
        expect("usr/local/etc/default/infer" in files, "settings of the service", files)
        guides = {f"usr/local/share/doc/infer/docs/{path.name}" for path in (SOURCE_DIR / "docs").glob("*.md")}
        expect_equal(guides - files, set(), "missing guides")
        expect_equal({name for name in files if not name.startswith("usr/local/")}, set(), "files beside the prefix")
        expect(os.access(f"{root}/usr/local/bin/infer", os.X_OK), "the program is executable")
        installed = succeeded(run("--version", program=f"{root}/usr/local/bin/infer"))
        expect_equal(installed.out, succeeded(run("--version")).out, "version of the installed program")


@test
def unit_has_the_paths_of_its_prefix():
    with tempfile.TemporaryDirectory() as root:
        files = install(root, "/usr")
        expect("etc/default/infer" in files, "settings", files)
        unit = pathlib.Path(root, "usr/lib/systemd/system/infer.service").read_text()
        expect("ExecStart=/usr/bin/infer serve --model ${INFER_MODEL} $INFER_FLAGS" in unit, "program", unit)
        expect("EnvironmentFile=/etc/default/infer" in unit and "@" not in re.sub("@system-service|@privileged", "", unit),
               "settings", unit)
        for setting in ("DynamicUser=yes", "ProtectSystem=strict", "NoNewPrivileges=yes", "ProtectHome=yes"):
            expect(setting in unit.splitlines(), setting, unit)


@test
def systemd_accepts_the_unit():
    if not shutil.which("systemd-analyze"):
        skip("no systemd-analyze")
    with tempfile.TemporaryDirectory() as root:
        install(root, "/usr")
        # systemd looks for the program and the manual page below the root that it is given.
        unit = pathlib.Path(root, "usr/lib/systemd/system/infer.service")
        text = unit.read_text().replace("/usr/bin/infer", f"{root}/usr/bin/infer")
        text = re.sub(r"^Documentation=.*\n", "", text, flags=re.M)
        checked = pathlib.Path(root, "infer.service")
        checked.write_text(text)
        done = call("systemd-analyze", "verify", checked)
        complaints = [line for line in done.stderr.splitlines() if "infer.service" in line]
        expect(done.returncode == 0 and not complaints, "verify", done.stderr)


@test
def settings_survive_a_second_installation():
    with tempfile.TemporaryDirectory() as root:
        install(root, "/usr/local")
        settings = pathlib.Path(root, "usr/local/etc/default/infer")
        settings.write_text("INFER_MODEL=/srv/mine.gguf\n")
        install(root, "/usr/local")
        expect_equal(settings.read_text(), "INFER_MODEL=/srv/mine.gguf\n", "settings")


@test
def settings_are_read_by_the_shell_rules_of_systemd():
    text = (SOURCE_DIR / "packaging" / "infer.default").read_text()
    names = set(re.findall(r"^#?(INFER_\w+)=", text, re.M))
    expect_equal(names, {"INFER_MODEL", "INFER_FLAGS", "INFER_API_KEY"}, "settings")


@test
def uninstalling_removes_what_was_installed():
    make_files()
    with tempfile.TemporaryDirectory() as root:
        environment = {"PREFIX": "/opt/infer", "DESTDIR": root, "BUILD_DIR": str(BUILD)}
        done = call("scripts/install.sh", "install", **environment)
        expect(done.returncode == 0, "install", done.stdout + done.stderr)
        other = pathlib.Path(root, "opt/infer/share/man/man1/other.1")
        other.touch()
        settings = pathlib.Path(root, "opt/infer/etc/default/infer")
        settings.write_text("INFER_MODEL=/srv/mine.gguf\n")
        done = call("scripts/install.sh", "uninstall", **environment)
        expect(done.returncode == 0, "uninstall", done.stdout + done.stderr)
        left = {path for path in pathlib.Path(root).rglob("*") if path.is_file()}
        expect_equal(left, {other, settings}, "files left")
        expect(not pathlib.Path(root, "opt/infer/share/doc/infer").exists(), "its own folders are removed")


@test
def relative_prefixes_are_refused():
    done = call("scripts/install.sh", "install", PREFIX="opt")
    expect(done.returncode == 2 and "absolute" in done.stderr, "refused", done.stderr)


main()
