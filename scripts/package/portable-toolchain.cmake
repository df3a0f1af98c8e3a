# A program for any Linux with glibc 2.31 or later. -DINFER_SYSROOT names the folder that sysroot.sh made,
# -DINFER_TARGET the processor, x86_64 or aarch64.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES INFER_SYSROOT INFER_TARGET)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${INFER_TARGET})
set(library ${INFER_SYSROOT}/usr/lib/${INFER_TARGET}-linux-gnu)
if(INFER_TARGET STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
  set(CMAKE_C_COMPILER cc)
  set(CMAKE_CXX_COMPILER c++)
  # The headers are this system's; only the libraries differ.
  set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE NEVER)
else()
  set(CMAKE_C_COMPILER ${INFER_TARGET}-linux-gnu-gcc)
  set(CMAKE_CXX_COMPILER ${INFER_TARGET}-linux-gnu-g++)
  set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
  find_program(INFER_QEMU NAMES qemu-${INFER_TARGET}-static qemu-${INFER_TARGET})
  set(CMAKE_CROSSCOMPILING_EMULATOR ${INFER_QEMU} -cpu max -L ${INFER_SYSROOT})
endif()
set(CMAKE_FIND_ROOT_PATH ${INFER_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE NEVER)
set(CMAKE_LIBRARY_ARCHITECTURE ${INFER_TARGET}-linux-gnu)
set(ENV{PKG_CONFIG_LIBDIR} ${library}/pkgconfig)
set(CMAKE_EXE_LINKER_FLAGS_INIT
  "--sysroot=${INFER_SYSROOT} -B${library} -L${library} -static-libstdc++ -static-libgcc")
# In glibc 2.31 these two are still libraries of their own.
set(CMAKE_CXX_STANDARD_LIBRARIES "${library}/glibc_compat.o -ldl -lpthread")
