"""Answers one system call with an error for everything started from here: a kernel without it."""
import ctypes, errno, os, struct, sys

LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ERRNO, ALLOW = 0x00050000, 0x7FFF0000
number, answer, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
code = getattr(errno, answer)
program = b"".join(
    struct.pack("HBBI", *instruction)
    for instruction in (
        (LOAD, 0, 0, 0),
        (EQUAL, 0, 1, number),
        (RETURN, 0, 0, ERRNO | code),
        (RETURN, 0, 0, ALLOW),
    )
)
libc = ctypes.CDLL(None, use_errno=True)
text = ctypes.create_string_buffer(program)
header = struct.pack("HxxxxxxP", 4, ctypes.addressof(text))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.create_string_buffer(header)):
    raise OSError(ctypes.get_errno(), "seccomp")
os.execvp(command[0], command)
