//! What a program on the host starts with.

use std::os::unix::fs::PermissionsExt;

use glovebox_backend::Ending;
use glovebox_model::{ByteString, Code, Grade, Guarantee};
use rustix::fs::{Mode, OFlags};

use crate::bench::{Bench, order};

#[test]
fn nothing_of_our_environment_is_inherited() {
    // Somebody's secret that this very process has.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let bench = Bench::new();
    let told = bench.run(&order(&["env"])).unwrap();
    let mut names: Vec<&str> = told
        .stdout
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.0))
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "GLOVEBOX_ARTIFACTS",
            "GLOVEBOX_RUN",
            "GLOVEBOX_WORK",
            "HOME",
            "LANG",
            "LOGNAME",
            "PATH",
            "USER",
        ]
    );
    let work = format!("GLOVEBOX_WORK={}", bench.work().display());
    assert!(told.stdout.lines().any(|line| line == work), "{told:?}");
    assert!(!told.stdout.contains("/home/sandbox"), "{told:?}");
}

#[test]
fn no_descriptor_of_ours_is_there() {
    let bench = Bench::new();
    let canary = bench.path().join("canary");
    std::fs::write(&canary, "secret").unwrap();
    // As somebody leaves it who started us: open for every program that we start.
    let held = rustix::fs::open(&canary, OFlags::RDONLY, Mode::empty()).unwrap();
    let told = bench.shell("ls -l /proc/$$/fd; :");
    assert_eq!(told.stdout.matches(" -> ").count(), 3, "{told:?}");
    assert!(!told.stdout.contains("canary"), "{told:?}");
    drop(held);
}

#[test]
fn it_leads_a_session_without_a_terminal_and_ignores_no_signal() {
    let bench = Bench::new();
    // The shell reads of itself: around the start of a child it blocks signals for a moment.
    let told = bench.shell(
        "read -r stat </proc/$$/stat; echo \"$stat\"; \
         while IFS= read -r line; do case $line in SigBlk*|SigIgn*) echo \"$line\";; esac; \
         done </proc/$$/status; (: </dev/tty)",
    );
    let (pid, rest) = told.stdout.split_once(' ').unwrap();
    let fields: Vec<&str> = rest.rsplit_once(") ").unwrap().1.split(' ').collect();
    // Group, session and terminal of proc_pid_stat(5).
    assert_eq!((fields[2], fields[3], fields[4]), (pid, pid, "0"));
    for line in told.stdout.lines().filter(|line| line.starts_with("Sig")) {
        let mask = line.split_once('\t').unwrap().1;
        // Two that the C library keeps to itself are nobody's.
        let mask = u64::from_str_radix(mask, 16).unwrap() & !0x1_8000_0000;
        assert_eq!(mask, 0, "{line}");
    }
    assert!(told.stderr.contains("/dev/tty"), "{told:?}");
}

#[test]
fn its_directory_is_the_one_that_is_held() {
    let bench = Bench::new();
    std::fs::create_dir(bench.work().join("sub")).unwrap();
    std::fs::write(bench.work().join("sub/mine"), "").unwrap();
    let mut sub = order(&["ls"]);
    sub.cwd = ByteString::try_from("/workspace/work/sub").unwrap();
    assert_eq!(bench.run(&sub).unwrap().stdout, "mine\n");
    // The directory is moved away, and something else stands where it was.
    std::fs::rename(bench.work(), bench.path().join("moved")).unwrap();
    std::os::unix::fs::symlink("/etc", bench.work()).unwrap();
    assert_eq!(bench.run(&sub).unwrap().stdout, "mine\n");
    let told = bench.shell("pwd -P; echo $GLOVEBOX_WORK");
    let moved = bench.path().join("moved");
    assert_eq!(told.stdout, format!("{0}\n{0}\n", moved.display()));
}

#[test]
fn a_directory_outside_of_the_workspace_is_not_entered() {
    let bench = Bench::new();
    std::os::unix::fs::symlink("/etc", bench.work().join("out")).unwrap();
    for cwd in [
        "/workspace/work/out",
        "/workspace/work/../..",
        "/workspace/work/none",
        "/workspace/inputs",
        "/workspace/workaround",
        "/etc",
        "",
    ] {
        let mut asked = order(&["pwd"]);
        asked.cwd = ByteString::try_from(cwd).unwrap();
        let error = bench.run(&asked).unwrap_err();
        assert_eq!(error.code, Code::CwdNotFound, "{cwd}");
    }
}

#[test]
fn commands_are_found_as_a_shell_finds_them() {
    let bench = Bench::new();
    let script = bench.work().join("script");
    std::fs::write(&script, "echo \"$1\"\n").unwrap();
    for (argv, code) in [
        (&["no-such-command"][..], Code::CommandNotFound),
        (&["./script"], Code::CommandNotExecutable),
        (&["/workspace/work/none"], Code::CommandNotFound),
        (&[""], Code::CommandNotFound),
        (&[], Code::CommandNotFound),
    ] {
        assert_eq!(bench.run(&order(argv)).unwrap_err().code, code, "{argv:?}");
    }
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    for command in ["./script", "/workspace/work/script"] {
        let told = bench.run(&order(&[command, "said"])).unwrap();
        assert_eq!(told.stdout, "said\n", "{command}");
    }
}

#[test]
fn limits_hold_from_its_start_on() {
    let bench = Bench::new();
    // They come a moment after the start, to children as well that were started before them.
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    rustix::io::write(&writer, b"go\n").unwrap();
    drop(writer);
    let told = bench.fed(
        "(read x; echo $x; i=0; \
         until [ \"$(ulimit -c) $(ulimit -n) $(ulimit -t)\" = '0 123 31' ] || [ $i -ge 300 ]; \
         do sleep 0.1; i=$((i+1)); done; ulimit -c; ulimit -n; ulimit -t)",
        reader,
    );
    assert_eq!(told.stdout, "go\n0\n123\n31\n");
}

#[test]
fn its_streams_and_its_end_are_told() {
    let bench = Bench::new();
    let told = bench.shell("echo out; echo err >&2; exit 7");
    assert_eq!((&*told.stdout, &*told.stderr), ("out\n", "err\n"));
    assert_eq!(told.ended.ending, Ending::Exited { code: 7 });
    let told = bench.shell("kill -9 $$");
    assert_eq!(told.ended.ending, Ending::Signaled { signal: 9 });
    // More than any pipe holds, to the last byte.
    let told = bench.shell("head -c 3000000 /dev/zero | tr '\\0' x");
    assert_eq!(told.stdout.len(), 3_000_000);
}

#[test]
fn what_is_enforced_says_nothing_of_a_sandbox() {
    for evidence in glovebox_backend::Host::evidence() {
        let grade = match evidence.guarantee.is_limit() {
            true => Grade::Supervised,
            false => Grade::Unavailable,
        };
        assert_eq!(evidence.grade, grade, "{}", evidence.guarantee);
    }
    assert_eq!(
        glovebox_backend::Host::evidence().len(),
        Guarantee::ALL.len()
    );
}
