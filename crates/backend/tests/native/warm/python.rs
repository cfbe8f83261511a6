//! A program in an interpreter that was started ahead does what it does in one of its own.

use std::os::fd::OwnedFd;

use glovebox_backend::{Ending, Language, Order, Place, Preload, Spec, Tree, Warm};
use glovebox_model::{Access, Bytes, Profile};

use crate::house::{Rooms, Told, Yard, input, order, profile, run, soon, text, unbound};

const ENV: [(&str, &str); 5] = [
    ("HOME", "/home/sandbox"),
    ("LANG", "C.UTF-8"),
    ("LC_ALL", "C.UTF-8"),
    ("PATH", "/usr/bin:/bin"),
    ("NO_COLOR", "1"),
];

pub(crate) fn preload(language: Language) -> Preload {
    let start = program_of(language, "");
    Preload {
        language,
        command: start.argv[0].clone(),
        env: start.env,
        path: start.path,
    }
}

pub(crate) fn program_of(language: Language, code: &str) -> Order {
    match language {
        Language::Python => order(&["python3", "-c", code], &ENV),
        Language::Node => order(&["node", "-e", code], &ENV),
    }
}

pub(crate) fn program(code: &str) -> Order {
    program_of(Language::Python, code)
}

pub(crate) fn warm_with(yard: &Yard, profile: &Profile, language: Language) -> Warm {
    let spec = unbound(profile);
    let preload = Some(preload(language));
    let mut warm = yard
        .native()
        .warm(&spec, &yard.house.state(), preload)
        .unwrap();
    warm.settle(soon()).unwrap();
    assert!(warm.is_alive());
    warm
}

pub(crate) fn warm(yard: &Yard, profile: &Profile) -> Warm {
    warm_with(yard, profile, Language::Python)
}

pub(crate) fn roomy() -> Profile {
    let mut profile = profile();
    profile.limits.memory_bytes = Bytes::mib(512);
    profile.limits.pids = glovebox_model::Count(64);
    profile
}

/// The same order in a fresh interpreter and in one that waited.
pub(crate) fn both_ways(
    yard: &Yard,
    profile: &Profile,
    rooms: &Rooms,
    order: &Order,
    stdin: impl Fn() -> Option<OwnedFd>,
) -> [Told; 2] {
    let tree = |directory, access| Place::Tree(Tree { directory, access });
    let spec = Spec {
        work: tree(&rooms.work, Access::Rw),
        inputs: tree(&rooms.inputs, Access::Ro),
        artifacts: tree(&rooms.artifacts, Access::Rw),
        ..unbound(profile)
    };
    let cold = yard.native().open(&spec, &yard.house.state()).unwrap();
    let cold = run(cold, profile, order, stdin()).unwrap();
    let language = match order.argv[0].as_bytes() {
        b"node" => Language::Node,
        _ => Language::Python,
    };
    assert!(preload(language).takes(order));
    let warm = warm_with(yard, profile, language);
    let bound = warm.bind(&rooms.room()).unwrap();
    let warm = run(bound, profile, order, stdin()).unwrap();
    [cold, warm]
}

const PROGRAMS: [&str; 58] = [
    "print(1)",
    "",
    "pass",
    "import sys; print(sys.argv, sys.path[0] == '', __name__, sys.flags, sys.executable)",
    "print(sorted(k for k in globals()))",
    "print(list(globals()), __doc__, __package__, __spec__, __loader__, __annotations__)",
    "'''the docstring'''\nprint(__doc__)",
    "x: int = 1\nprint(__annotations__)",
    "import sys; print([k for k in sys.modules['__main__'].__dict__])",
    "import sys; print(sys.orig_argv[:2], len(sys.orig_argv), sys.orig_argv[2] == open('/proc/self/cmdline').read() or True)",
    "import os; print(os.environ)",
    "import os; print(list(os.environ.items())); os.system('env')",
    "import posix; print(posix.environ)",
    "import subprocess; print(subprocess.run(['env'], capture_output=True).stdout)",
    "import os; print(os.getcwd(), os.listdir('.'), os.umask(0))",
    "raise ValueError('no')",
    "def f():\n    return 1 / 0\n\ndef g():\n    f()\n\ng()",
    "try:\n    {}['a']\nexcept KeyError as e:\n    raise RuntimeError('worse') from e",
    "try:\n    {}['a']\nexcept KeyError:\n    [][1]",
    "raise ExceptionGroup('many', [ValueError(1), TypeError(2)])",
    "def f(:",
    "if 1:\nprint(2)",
    "print('a'\n",
    "print(1)\n  print(2)",
    "exit(3)",
    "import sys; sys.exit()",
    "import sys; sys.exit(7)",
    "import sys; sys.exit('words')",
    "import sys; sys.exit((1, 2))",
    "raise SystemExit(300)",
    "import os; os._exit(9)",
    "import os; os.abort()",
    "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "raise KeyboardInterrupt",
    "import signal, os; os.kill(os.getpid(), signal.SIGINT); import time; time.sleep(5)",
    "import atexit; atexit.register(lambda: print('bye')); print('hello')",
    "import atexit; atexit.register(lambda: 1 / 0); print('hello')",
    "import threading, time\nsaid = threading.Event()\ndef f():\n    said.wait(); time.sleep(.05); print('thread')\nthreading.Thread(target=f).start(); print('main'); said.set()",
    "import threading\ndef f():\n    raise OSError('in a thread')\nt = threading.Thread(target=f, name='t'); t.start(); t.join()",
    "import sys; sys.excepthook = lambda t, v, tb: print('hook', t, v, tb.tb_lineno, tb.tb_next)\n\n1 / 0",
    "import sys, traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    traceback.print_exc(); print(sys.exc_info()[2].tb_next)",
    "import warnings; warnings.warn('careful'); print('on')",
    "class A:\n    def __del__(self): print('gone')\na = A(); print('end')",
    "class A:\n    def __del__(self): print('gone', self.n, A)\na, b = A(), A(); a.n, b.n = 1, 2; a.me = a; _c = A(); _c.n = 3",
    "class A:\n    def __del__(self): print('gone')\nimport json, random; json.mine = A(); random.seed(A)",
    "f = open('/tmp/left', 'w'); f.write('unflushed')\nimport atexit, os; atexit.register(lambda: print(os.stat('/tmp/left').st_size))",
    "f = open('/dev/stdout', 'w'); f.write('at the end')",
    "import json.nothing",
    "assert 1 == 2, 'they differ'",
    "import sys; sys.stdout.write('no end'); sys.stderr.write('nor here')",
    "import sys; print('out'); print('err', file=sys.stderr); print('out'); print(sys.stdout, sys.stderr)",
    "import sys; print(sys.stdout.line_buffering, sys.stderr.line_buffering, sys.stdin, sys.stdin.read())",
    "import sys; print(sys.stdin.seekable(), sys.stdin.buffer, sys.stdin.fileno(), sys.stdin.errors, sys.stdin.newlines)\nimport os; print(os.readlink('/proc/self/fd/0'))",
    "print('ä€😀', '\\udc80'.encode('utf8', 'surrogateescape'))",
    "# -*- coding: latin-1 -*-\nprint('ä')",
    "from __future__ import annotations\ndef f(x: nothing): pass\nprint(f.__annotations__)",
    "import json, re, math, random, datetime, pathlib, collections, typing\nprint(json.dumps([1]), re.sub('a', 'b', 'aa'), math.pi, datetime.date(2020, 1, 2), pathlib.Path('a') / 'b')",
    "import resource as r; print(r.getrlimit(r.RLIMIT_NOFILE), r.getrlimit(r.RLIMIT_CORE), r.getrlimit(r.RLIMIT_FSIZE))\nimport os; print(os.getsid(0) == os.getpid(), os.getuid())",
];

pub(crate) fn a_python_program_cannot_tell() {
    let yard = Yard::new();
    let profile = roomy();
    let rooms = Rooms::new(&yard.house, "a");
    for code in PROGRAMS {
        let mut order = program(code);
        order.env.push((text("OWN"), text("välue")));
        let [cold, warm] = both_ways(&yard, &profile, &rooms, &order, || None);
        assert_eq!(cold.ended.ending, warm.ended.ending, "{code}\n{warm:?}");
        assert_eq!(cold.stdout, warm.stdout, "{code}\n{}", warm.stderr);
        let [cold, warm] = [cold, warm].map(|it| without_addresses(&it.stderr));
        assert_eq!(cold, warm, "{code}");
    }
}

/// Each has something that acts, or could, when its interpreter ends.
const ENDINGS: [&str; 26] = [
    "f = open('/dev/stdout', 'w'); f.write('one'); g = [f]",
    "import json\njson.mine = open('/dev/stdout', 'w'); json.mine.write('kept elsewhere')",
    "import gc\nf = open('/dev/stdout', 'w'); f.write('forgotten'); gc.freeze()",
    "import gc\nf = open('/dev/stdout', 'w'); f.write('remembered'); gc.unfreeze()",
    "import gc\ngc.disable()\nclass A:\n    def __del__(self): print('collected')\na = A(); a.a = a; del a",
    "def g():\n    try:\n        yield 1\n    finally:\n        print('closed')\ni = g(); next(i)",
    "async def f(): pass\nc = f()",
    "async def f(): yield\nc = f().__anext__()",
    "from contextlib import contextmanager\n@contextmanager\ndef c():\n    yield\n    print('left')\nm = c(); m.__enter__()",
    "import weakref\nclass A: pass\na = A(); weakref.finalize(a, print, 'finalized')",
    "import weakref\nclass A: pass\na = A(); r = weakref.ref(a, lambda _: print('called'))\nb = [a, r]",
    "import _weakref\nclass A: pass\nclass R(_weakref.ref): pass\na = A(); r = R(a, lambda _: print('called'))",
    "class M(type):\n    def __del__(self): print('class gone')\nclass A(metaclass=M): pass",
    "class A: pass\na = A(); A.__del__ = lambda self: print('added later')",
    "class L(list):\n    def __del__(self): print('list gone')\nl = L([1])",
    "import sys\nsys.stdout = open('/dev/stdout', 'w'); print('replaced')",
    "import sys, io\nsys.stdout = io.TextIOWrapper(sys.stdout.detach()); print('wrapped')",
    "import sys\nb = sys.stdout.detach(); b.write(b'detached')",
    "import sys\nsys.stdout.close()",
    "import os\nos.close(1); print('nowhere')",
    "import os\nos.close(1); os.close(2)",
    "import os\nos.close(1); os.close(2); os._exit(3)",
    "import os\nos.close(1); os.close(2); os.kill(os.getpid(), 9)",
    "import _thread, time\n_thread.start_new_thread(lambda: time.sleep(9), ()); print('not waited for')",
    "import os\npid = os.fork(); print('parent' if pid else 'child')\npid and os.waitpid(pid, 0)",
    "import sys\nsys.stdout.reconfigure(line_buffering=True); sys.setprofile(lambda *a: None); print('x')",
];

pub(crate) fn what_acts_at_its_end_does() {
    let yard = Yard::new();
    let profile = roomy();
    let rooms = Rooms::new(&yard.house, "a");
    for code in ENDINGS {
        let [cold, warm] = both_ways(&yard, &profile, &rooms, &program(code), || None);
        assert_eq!(cold.ended.ending, warm.ended.ending, "{code}\n{warm:?}");
        assert_eq!(cold.stdout, warm.stdout, "{code}\n{}", warm.stderr);
        let [cold, warm] = [cold, warm].map(|it| without_addresses(&it.stderr));
        assert_eq!(cold, warm, "{code}");
    }
}

/// Its end is known before its memory is given back; whoever it left behind is gone by then too.
pub(crate) fn nobody_writes_after_its_end() {
    let yard = Yard::new();
    let profile = roomy();
    let rooms = Rooms::new(&yard.house, "a");
    let file = rooms.path("work").join("count");
    // A child without its outputs, that writes for as long as it lives.
    let code = "import os
if os.fork() == 0:
    os.close(1); os.close(2)
    while True:
        with open('count', 'a') as f: f.write('x')
while not os.path.exists('count'): pass
print('left')";
    for _ in 0..5 {
        let bound = warm(&yard, &profile).bind(&rooms.room()).unwrap();
        let told = run(bound, &profile, &program(code), None).unwrap();
        assert_eq!(told.ended.ending, Ending::Exited { code: 0 }, "{told:?}");
        assert_eq!(told.stdout, "left\n");
        let length = || std::fs::metadata(&file).unwrap().len();
        let before = length();
        std::thread::sleep(std::time::Duration::from_millis(30));
        assert_eq!(before, length());
        std::fs::remove_file(&file).unwrap();
    }
}

/// Where an object lies is random.
fn without_addresses(text: &str) -> String {
    let mut parts = text.split(" at 0x");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + part.trim_start_matches(|it: char| it.is_ascii_hexdigit())
    })
}

pub(crate) fn its_own_modules_come_first() {
    let yard = Yard::new();
    let profile = roomy();
    let rooms = Rooms::new(&yard.house, "a");
    std::fs::write(rooms.path("work").join("json.py"), "print('mine')\n").unwrap();
    std::fs::create_dir(rooms.path("work").join("own")).unwrap();
    std::fs::write(rooms.path("work").join("own/__init__.py"), "x = 1\n").unwrap();
    for code in [
        "import json; print(json.__file__)",
        "import own; print(own.x, own.__file__)",
    ] {
        let [cold, warm] = both_ways(&yard, &profile, &rooms, &program(code), || None);
        assert_eq!(
            (&cold.stdout, &cold.stderr),
            (&warm.stdout, &warm.stderr),
            "{code}"
        );
        assert_eq!(warm.ended.ending, Ending::Exited { code: 0 });
    }
}

pub(crate) fn standard_input_is_as_ever() {
    let yard = Yard::new();
    let profile = roomy();
    let rooms = Rooms::new(&yard.house, "a");
    for code in [
        "import sys; print(repr(sys.stdin.read()), sys.stdin.seekable(), sys.stdin)",
        "print(input('? ')); print(input())\nprint(input())",
        "import os; print(os.read(0, 100))",
        "import subprocess; subprocess.run(['cat'])",
        "for line in __import__('sys').stdin: print(repr(line))",
    ] {
        let stdin = || Some(input("one\r\ntwö\n".as_bytes()));
        let [cold, warm] = both_ways(&yard, &profile, &rooms, &program(code), stdin);
        assert_eq!(cold.ended.ending, warm.ended.ending, "{code}\n{warm:?}");
        assert_eq!(
            (&cold.stdout, &cold.stderr),
            (&warm.stdout, &warm.stderr),
            "{code}"
        );
    }
}
