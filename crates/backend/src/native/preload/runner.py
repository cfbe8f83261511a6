# Waits for a program and becomes it. Nothing of this may be seen by the program but what `python3 -c`
# shows as well; whatever is not as expected ends here, before anything of the program runs.
def runner():
    import _thread
    import _weakref
    import atexit
    import gc
    import io
    import os
    import posix
    import sys

    if not (3, 8) <= sys.version_info[:2] <= (3, 12):
        # Others show the source of such programs in their tracebacks, or change it before it runs.
        posix.write(2, b"this version of Python is not known here\n")
        posix._exit(1)

    started_with = set(sys.modules)
    for name in (
        "argparse", "base64", "bisect", "collections", "copy", "csv", "datetime", "enum",
        "functools", "heapq", "io", "itertools", "json", "math", "operator", "pathlib", "random",
        "re", "statistics", "string", "struct", "textwrap", "time", "traceback", "typing",
    ):
        try:
            __import__(name)
        except ImportError:
            pass
    ahead = [name for name in sys.modules if name not in started_with]
    # Found while the directory was another.
    sys.path_importer_cache.pop(posix.getcwd(), None)

    # What standard input is where none was given, made as the interpreter makes its own.
    null = posix.open("/dev/null", posix.O_RDONLY)
    given = posix.dup(0)
    posix.dup2(null, 0)
    raw = io.open(0, "rb", closefd=False)
    raw.raw.name = "<stdin>"
    nothing = io.TextIOWrapper(raw, sys.stdin.encoding, sys.stdin.errors, "\n", False)
    nothing.mode = "r"
    posix.dup2(given, 0)
    posix.close(given)

    stdout, stderr = sys.stdout, sys.stderr
    bases = type.__dict__["__mro__"].__get__
    attributes = type.__dict__["__dict__"].__get__
    reference = _weakref.ref

    def nothing_acts_at_the_end(witness):
        # Whether the end of this interpreter could be noticed by anything that the program made:
        # a file with something to write, a generator to close, a thread, a finalizer. All that was
        # made since the collector was told to forget the rest is looked at.
        if len(sys.modules) != known or atexit._ncallbacks() or _thread._count():
            return False
        if sys.stdout is not stdout or sys.stderr is not stderr or sys.__stdout__ is not stdout:
            return False
        if sys.gettrace() or sys.getprofile():
            return False
        made = gc.get_objects()
        # Without the witness the collector was told to forget more.
        seen = False
        kinds = set()
        if len(made) > 20_000:
            return False
        for it in made:
            kind = type(it)
            kinds.add(kind)
            seen = seen or it is witness
            if kind is reference and it.__callback__ is not None:
                return False
        for kind in kinds:
            for base in bases(kind):
                if "__del__" in attributes(base) or (base is reference and kind is not base):
                    return False
        return seen

    def leave():
        # The way out that takes nothing apart. What cannot be written is left to the other one,
        # which complains of it.
        try:
            stdout.flush()
            stderr.flush()
            # Nobody has to wait until all of its memory is given back.
            posix.close(1)
            posix.close(2)
        except (OSError, ValueError):
            return
        posix._exit(0)

    # Once for nothing: whatever is done for the first time takes longer.
    known = 0
    compile("1", "<string>", "exec", 0, True)
    nothing_acts_at_the_end(None)
    known = len(sys.modules)
    nothing_acts_at_the_end(None)
    stdout.flush()
    stderr.flush()

    # What no program made need not be taken apart at its end: held by something that only holds
    # itself, where the collector does not look.
    held = []
    for name, module in sys.modules.items():
        if name != "__main__":
            held.append(module)
            held.extend(vars(module).values())
    held.append(held)
    del held
    gc.collect()
    gc.freeze()
    posix.write(3, b"R")

    def take(count):
        taken = b""
        while len(taken) < count:
            part = posix.read(3, count - len(taken))
            if not part:
                posix._exit(1)
            taken += part
        return taken

    body = take(int.from_bytes(take(4), "little"))
    at = 1

    def number():
        nonlocal at
        at += 4
        if at > len(body):
            posix._exit(1)
        return int.from_bytes(body[at - 4:at], "little")

    def string():
        nonlocal at
        length = number()
        at += length
        if at > len(body):
            posix._exit(1)
        return body[at - length:at]

    has_stdin = body[0] == 1
    code = string()
    directory = string()
    variables = [(string(), string()) for _ in range(number())]
    if at != len(body):
        posix._exit(1)

    try:
        posix.chdir(directory)
    except OSError as error:
        posix.write(3, b"C" + error.errno.to_bytes(4, "little"))
        posix._exit(127)

    # Python itself sets this one where the locale is C.
    coerced = os.environb.get(b"LC_CTYPE")
    if coerced is not None and all(key != b"LC_CTYPE" for key, _ in variables):
        variables.append((b"LC_CTYPE", coerced))
    if variables != list(posix.environ.items()):
        for key in list(os.environb):
            del os.environb[key]
        posix.environ.clear()
        for key, value in variables:
            os.environb[key] = value
            posix.environ[key] = value

    if not has_stdin:
        posix.dup2(null, 0)
        sys.stdin = sys.__stdin__ = nothing
    posix.close(null)

    # A file of the program's own directory comes before the library's.
    tops = {name.partition(".")[0] for name in ahead}
    try:
        beside = {name.partition(".")[0] for name in posix.listdir(".")}
    except OSError:
        beside = set()
    if tops & beside:
        for name in ahead:
            sys.modules.pop(name, None)

    text = os.fsdecode(code)
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[2] = text
    own = (runner.__code__, sys._getframe(1).f_code)
    # A module of its own: what was there before is where the collector does not look.
    first = sys.modules["__main__"]
    main = sys.modules["__main__"] = type(sys)("__main__")
    main.__loader__ = first.__loader__
    main.__annotations__ = {}
    main.__builtins__ = first.__builtins__
    main = main.__dict__
    del first
    posix.write(3, b"G")
    posix.close(3)
    try:
        exec(compile(text, "<string>", "exec", 0, True), main)
    except SystemExit:
        raise
    except BaseException:
        hook = sys.excepthook

        def shown(kind, value, trace):
            while trace is not None and trace.tb_frame.f_code in own:
                trace = trace.tb_next
            sys.excepthook = hook
            sys.last_traceback = value.__traceback__ = trace
            hook(kind, value, trace)

        sys.excepthook = shown
        raise
    if nothing_acts_at_the_end(main):
        leave()


runner()
