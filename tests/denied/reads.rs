//! Ways to read.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use support::{Caller, Run};

use crate::ground::{Ground, LITERAL, SECRET, WILD};

/// Every name, by every way; once more when others have changed the workspace; and moved away.
const LOOK: &str = r#"
import mmap, os, subprocess, sys
def look(names):
    for name in names:
        for path in (name, '/proc/self/cwd/' + name, '/workspace/work/' + name):
            try: print(path, open(path).read())
            except OSError as error: print(path, error)
        try:
            file = os.open(name, os.O_RDONLY)
            print(mmap.mmap(file, 0, prot=mmap.PROT_READ)[:])
        except (OSError, ValueError) as error: print(error)
names = ['.ssh/id', '.env', 'k/id', 'absolute', 'other-name', 'dir/deep/x.pem', 'dir/pem-name', 'later']
look(names)
print('ready', flush=True)
sys.stdin.readline()
look(names)
sys.stdout.flush()
subprocess.run(['tar', '-cf', '-', '.'])
for name in ('.ssh', '.env', 'dir'):
    try: os.rename(name, 'moved' + name)
    except OSError as error: print(error)
    for way in (['mv', name], ['cp', '-r', name], ['ln', name]):
        subprocess.run(way + ['-t', '/tmp'])
        subprocess.run(['grep', '-r', '-a', '.', '/tmp'])
look(['moved.ssh/id', 'moved.env', 'moveddir/deep/x.pem'])
for name in ('.ssh', '.env'):
    try: os.chmod(name, 0o777)
    except OSError as error: print(error)
look(names)
"#;

/// What it said, with the workspace changed from outside while it waited.
fn said(ground: &Ground, run: &Run<'_>) -> String {
    let mut child = run
        .command()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut all = Vec::new();
    while !all.ends_with(b"ready\n") {
        if output.read_until(b'\n', &mut all).unwrap() == 0 {
            break;
        }
    }
    let work = ground.work();
    // In place, by rename, with the directory, and under a name that was not there.
    fs::write(work.join("dir/deep/x.pem"), SECRET).unwrap();
    fs::write(work.join("new"), SECRET).unwrap();
    fs::rename(work.join("new"), work.join(".env")).unwrap();
    fs::create_dir(work.join("other")).unwrap();
    fs::write(work.join("other/id"), SECRET).unwrap();
    fs::rename(work.join(".ssh"), work.join("old")).unwrap();
    fs::rename(work.join("other"), work.join(".ssh")).unwrap();
    // What is moved away from outside has a name that no rule denies.
    fs::remove_dir_all(work.join("old")).unwrap();
    fs::write(work.join("later"), SECRET).unwrap();
    let _ = child.stdin.take().unwrap().write_all(b"go\n");
    output.read_to_end(&mut all).unwrap();
    let mut trouble = String::new();
    let _ = child.stderr.take().unwrap().read_to_string(&mut trouble);
    child.wait().unwrap();
    format!("{}{trouble}", String::from_utf8_lossy(&all))
}

#[test]
fn no_way_to_read_a_denied_path_is_left() {
    for caller in [Caller::Root, Caller::User] {
        let ways: &[&[&str]] = match caller {
            Caller::Root => &[
                &[],
                &["--simulate"],
                &["--workspace", "ro"],
                &["--keep-if-ok"],
            ],
            Caller::User => &[&[]],
        };
        for (paths, options) in [LITERAL, WILD]
            .into_iter()
            .flat_map(|paths| ways.iter().map(move |it| (paths, *it)))
            .chain([("", &[][..])])
        {
            let Some(ground) = Ground::new(caller) else {
                return;
            };
            let run = ground.imports(paths, LOOK).with(options).with(["--stdin"]);
            let said = said(&ground, &run);
            assert!(said.contains("ready"), "{paths} {options:?}: {said}");
            assert_eq!(
                said.contains(SECRET),
                paths.is_empty(),
                "{options:?}: {said}"
            );
            ground.trial.end();
        }
    }
}

#[test]
fn programs_that_obey_files_do_not_read_it_either() {
    let Some(ground) = Ground::new(Caller::Root) else {
        return;
    };
    let work = ground.work();
    let script = |name: &str| {
        let path = ground
            .trial
            .put(name, "#!/bin/sh\ncat .env .ssh/id k/id other-name\n");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    script("hook");
    fs::create_dir(work.join("parts")).unwrap();
    script("parts/go");
    ground.trial.put("args", "-E -P -x c .env other-name");
    ground.trial.put("json.py", "print(open('.env').read())");
    for command in [
        &[support::python(), "-c", "import json"][..],
        &["run-parts", "parts"],
        &["gcc", "@args"],
        &["./hook"],
    ] {
        for (paths, expected) in [(LITERAL, false), (WILD, false), ("", true)] {
            let output = ground.run(paths, command).plain();
            let all = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&all);
            assert_eq!(
                said.contains(SECRET),
                expected,
                "{command:?} {paths}: {said}"
            );
        }
    }
    ground.trial.end();
}

#[test]
fn without_the_covers_it_would_be_read() {
    let Some(ground) = Ground::new(Caller::Root) else {
        return;
    };
    let read = "print(open('.env').read())";
    let said = |mutation: &str| {
        let run = ground.imports(LITERAL, read);
        let output = run.outside("GLOVEBOX_MUTATION", mutation).plain();
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stdout).contains(SECRET),
        )
    };
    assert_eq!(said(""), (false, false));
    assert_eq!(said("layer over"), (true, true));
    ground.trial.end();
}
