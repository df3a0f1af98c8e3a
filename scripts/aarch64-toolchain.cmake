# Cross build for 64-bit Arm, run under user-mode emulation, so that the NEON code is tested on every machine.
# Linked statically, so that the emulator needs no Arm system around it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
# This machine's libraries and headers are for the wrong architecture.
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

find_program(INFER_QEMU NAMES qemu-aarch64-static qemu-aarch64)
# "max" enables every extension the emulator has, including dot products and int8 matrix products.
set(CMAKE_CROSSCOMPILING_EMULATOR ${INFER_QEMU} -cpu max)
