//! Which programs were started.

use std::process::Command;

use glovebox_backend::Noticed;

use crate::observe::ground::{PATH, python, see, shell};

/// Whatever a shell does to start something.
const SCRIPT: &str = r#"
nosuchcommand 2>/dev/null
ls / >/dev/null
env true
echo a b c | xargs -n 1 /usr/bin/printf '%s' >/dev/null
(cd / && sh -c 'ls >/dev/null; exec true')
true && /usr/bin/true | cat
find /usr/bin/env -exec /usr/bin/basename {} \;
D=$(mktemp -d)
printf '#!/bin/sh\nexec /usr/bin/true from script\n' > $D/script
chmod +x $D/script
cd $D && env -i /usr/bin/env ./script arg 2>/dev/null
rm -r $D
timeout 10 sh -c '/usr/bin/true & wait'
nice -n 1 nosuch 2>/dev/null
env nosuchcommand 2>/dev/null
exit 0
"#;

/// The calls that succeeded, as `strace` of the host tells them.
fn traced(script: &str) -> Option<Vec<String>> {
    let place = tempfile::tempdir().unwrap();
    let output = Command::new("strace")
        .args(["-ff", "-e", "trace=execve,execveat", "-o"])
        .arg(place.path().join("trace"))
        .args(["/usr/bin/sh", "-c", script])
        .env_clear()
        .env("PATH", PATH)
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "no strace: {error}");
            println!("no strace here: {error}");
            return None;
        }
    };
    assert!(output.status.success(), "{output:?}");
    let mut lines = Vec::new();
    for file in std::fs::read_dir(place.path()).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let succeeded = text.lines().filter(|line| line.ends_with("= 0"));
        for line in succeeded {
            let line = line.strip_prefix("execve(").expect("an execve");
            let (program, rest) = line.split_once(", ").unwrap();
            let (argv, _) = rest.split_once("], ").unwrap();
            lines.push(format!("{program} {argv}]"));
        }
    }
    Some(lines)
}

/// Names of a directory that is another each time, and of a program by a path of its own.
fn plain(lines: Vec<String>) -> Vec<String> {
    let mut lines: Vec<String> = lines
        .into_iter()
        .filter(|it| !it.starts_with("\"/usr/bin/sh\" [\"sh\", \"-c\", \"\\n"))
        .filter(|it| !it.starts_with("\"/usr/bin/sh\" [\"/usr/bin/sh\""))
        .map(|line| match line.split_once("/tmp/tmp.") {
            None => line,
            Some((before, after)) => {
                let rest = after.find(['/', '"']).map_or("", |at| &after[at..]);
                plain(vec![format!("{before}/TMP{rest}")]).remove(0)
            }
        })
        // The host's trace has what was written, ours the whole path.
        .map(|line| line.replace("\"./script\" [", "\"/TMP/script\" ["))
        .collect();
    lines.sort();
    lines
}

pub(crate) fn programs_are_told_as_strace_tells_them() {
    let told = shell(SCRIPT);
    let seen = plain(told.execs());
    assert!(seen.len() > 20, "{seen:#?}");
    if let Some(traced) = traced(SCRIPT) {
        similar(&seen, &plain(traced));
    }
}

fn similar(seen: &[String], traced: &[String]) {
    let missing: Vec<_> = traced.iter().filter(|it| !seen.contains(it)).collect();
    let made_up: Vec<_> = seen.iter().filter(|it| !traced.contains(it)).collect();
    assert!(
        missing.is_empty() && made_up.is_empty() && seen.len() == traced.len(),
        "missing {missing:#?}, made up {made_up:#?}, {} and {}",
        seen.len(),
        traced.len()
    );
}

pub(crate) fn a_search_of_the_path_tells_one_program() {
    let told = shell(
        "PATH=/nowhere:/tmp:/etc:/usr/sbin:/usr/bin:/bin /usr/bin/env true\n\
         PATH=/nowhere:/also/nowhere /usr/bin/env true\n\
         exit 0",
    );
    let expected = [
        "/usr/bin/sh",
        "/usr/bin/env",
        "/usr/bin/true",
        "/usr/bin/env",
    ];
    assert_eq!(told.programs(), expected);
}

pub(crate) fn what_cannot_be_executed_is_no_program() {
    let told = python(
        r##"
import errno, os
os.mkdir("/tmp/d")
def file(name, text, mode):
    with open("/tmp/" + name, "wb") as it: it.write(text)
    os.chmod("/tmp/" + name, mode)
file("plain", b"#!/bin/sh\n", 0o644)
file("garbage", b"\x00\x01\x02\x03", 0o755)
file("lost", b"#!/nowhere/interpreter\n", 0o755)
file("torn", b"\x7fELF\x02\x01\x01", 0o755)
for name in ("none", "d", "plain", "garbage", "lost", "torn", "plain/below"):
    pid = os.fork()
    if pid == 0:
        try: os.execv("/tmp/" + name, ["x"])
        except OSError as error: os._exit(error.errno)
    print(errno.errorcode[os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])])
try: os.execv("/usr/bin/true", ["x" * (1 << 20)] * 8)
except OSError as error: print(errno.errorcode[error.errno])
"##,
    );
    let expected = "ENOENT\nEACCES\nEACCES\nENOEXEC\nENOENT\nENOEXEC\nENOTDIR\nE2BIG\n";
    assert_eq!(told.stdout, expected);
    assert_eq!(told.programs(), ["/usr/bin/python3"]);
}

pub(crate) fn a_thousand_short_programs_are_all_told() {
    let told = shell("i=0; while [ $i -lt 1000 ]; do /usr/bin/true $i; i=$((i+1)); done");
    let expected = (0..1000).map(|it| format!(r#""/usr/bin/true" ["/usr/bin/true", "{it}"]"#));
    assert_eq!(told.execs()[1..], expected.collect::<Vec<_>>());
}

pub(crate) fn the_same_program_again_is_another() {
    let told = see(&["env", "env", "env", "env", "env", "true"]);
    let mut expected = vec!["/usr/bin/env"; 5];
    expected.push("/usr/bin/true");
    assert_eq!(told.programs(), expected);
    let pids: Vec<u32> = told.notices.iter().map(|it| it.pid).collect();
    assert_eq!(pids, [pids[0]; 6]);
}

pub(crate) fn numbers_are_those_of_the_sandbox() {
    let told = shell("echo $$ $PPID; cd /tmp; sh -c 'echo $$ $PPID; true'; true");
    let said: Vec<u32> = told
        .stdout
        .split_whitespace()
        .map(|it| it.parse().unwrap())
        .collect();
    let seen: Vec<u32> = told
        .notices
        .iter()
        .flat_map(|it| [it.pid, it.parent])
        .collect();
    assert_eq!(seen, said);
    assert_eq!(seen[1], 1);
    let cwds: Vec<String> = told
        .notices
        .iter()
        .map(|it| match &it.what {
            Noticed::Exec { cwd, .. } => cwd.as_ref().unwrap().display(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(cwds, ["/workspace/work", "/tmp"]);
}

pub(crate) fn long_arguments_are_cut() {
    let told = python(
        r#"
import subprocess
subprocess.run(["true"] + ["x"] * 1022)
subprocess.run(["true"] + ["x"] * 1023)
subprocess.run(["true"] + ["x"] * 1024)
subprocess.run(["true", "x" * 65532])
subprocess.run(["true", "x" * 65533])
subprocess.run(["true", "x" * 100000, "y"])
"#,
    );
    let mut seen = told.notices[1..].iter().map(|it| match &it.what {
        Noticed::Exec {
            argv,
            argv_truncated,
            ..
        } => {
            let bytes: usize = argv.iter().map(|it| it.as_bytes().len()).sum();
            (argv.len(), bytes, *argv_truncated)
        }
        other => panic!("{other:?}"),
    });
    for expected in [
        (1023, 1026, false),
        (1024, 1027, false),
        (1024, 1027, true),
        (2, 65536, false),
        (2, 65536, true),
        (2, 65536, true),
    ] {
        assert_eq!(seen.next(), Some(expected));
    }
    assert_eq!(seen.next(), None);
}

/// An ordinary user cannot look into it before it is there.
pub(crate) fn the_first_program_is_told_whatever_it_is() {
    assert_eq!(
        see(&["true", "a"]).execs(),
        [r#""/usr/bin/true" ["true", "a"]"#]
    );
    assert_eq!(
        see(&["/bin/true"]).execs(),
        [r#""/bin/true" ["/bin/true"]"#]
    );
    // Scripts: what was asked for, not what reads it.
    let script = std::fs::read("/usr/bin/ldd").is_ok_and(|text| text.starts_with(b"#!"));
    if script {
        let told = see(&["ldd", "--version"]);
        assert_eq!(told.execs()[0], r#""/usr/bin/ldd" ["ldd", "--version"]"#);
    }
}
