//! Ctrl-C in the middle of work on whole trees: what was half done is gone, or said.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

use crate::trial::{Answer, Running, Trial, names, until};

/// Much to copy, and nothing on disk.
const LARGE: u64 = 1 << 30;

/// A directory `source` of a small file and a large one, which comes after it.
fn source(trial: &Trial, large: u64) -> PathBuf {
    let source = trial.work().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("a"), "small").unwrap();
    let file = File::create(source.join("b")).unwrap();
    file.set_len(large).unwrap();
    source
}

/// Interrupts it once this is so. None when it was over before: on a busy host nobody may have seen
/// it begin.
fn interrupted(trial: &Trial, args: &[&str], mut so: impl FnMut() -> bool) -> Option<Answer> {
    let child = Running::spawn(&mut trial.command(args));
    until(|| so().then_some(()));
    kill_process(Pid::from_child(&child.0), Signal::INT).unwrap();
    let answer = child.answer();
    if answer.code == Some(0) {
        return None;
    }
    let answer = answer.exits(130);
    assert!(answer.stderr.contains("error[canceled]"), "{answer:?}");
    Some(answer)
}

/// The first that was interrupted in time.
fn soon<T>(attempt: impl Fn() -> Option<T>) -> T {
    (0..20).find_map(|_| attempt()).unwrap()
}

fn entries(dir: &Path) -> Vec<String> {
    match dir.exists() {
        true => names(dir),
        false => Vec::new(),
    }
}

#[test]
fn a_download_into_a_directory_leaves_nothing() {
    let download = ["file", "download", "--output", "out", "--project", "demo"];
    let trial = soon(|| {
        let trial = Trial::new();
        source(&trial, LARGE);
        let project = ["--project", "demo"];
        let upload = [&["file", "mkdir", "dir"][..], &project].concat();
        trial.run(&upload).exits(0);
        let work = trial.state().join("projects/demo/work");
        fs::rename(trial.work().join("source/b"), work.join("b")).unwrap();
        let out = trial.work().join("out");
        interrupted(&trial, &download, || out.exists()).map(|_| trial)
    });
    let work = trial.state().join("projects/demo/work");
    let out = trial.work().join("out");
    assert!(!out.exists());
    // One that was there stays, with what was in it.
    fs::create_dir(&out).unwrap();
    fs::write(out.join("mine"), "mine").unwrap();
    fs::remove_file(work.join("b")).unwrap();
    trial.run(&download).exits(0);
    assert_eq!(names(&out), ["dir", "mine"]);
}

#[test]
fn a_cache_is_as_it_was() {
    // Whatever the copy is called until it is whole.
    let copies = |trial: &Trial| {
        let caches = trial.state().join("caches");
        let scopes = entries(&caches).into_iter().map(|it| caches.join(it));
        let within =
            scopes.flat_map(|scope| entries(&scope).into_iter().map(move |it| scope.join(it)));
        within.filter(|it| it.is_dir()).collect::<Vec<_>>()
    };
    let fill = |source: &Path| {
        let from = source.to_str().unwrap().to_owned();
        let words = ["cache", "fill", "pip", "--max-bytes", "2G", "--from"];
        let words = words.map(str::to_owned).into_iter();
        words.chain([from]).collect::<Vec<String>>()
    };
    let (trial, source) = soon(|| {
        let trial = Trial::new();
        let source = source(&trial, LARGE);
        let words = fill(&source);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let is_under_way = || copies(&trial).iter().any(|copy| copy.join("a").exists());
        interrupted(&trial, &words, is_under_way).map(|_| (trial, source))
    });
    assert_eq!(copies(&trial), Vec::<PathBuf>::new());
    fs::remove_file(source.join("b")).unwrap();
    trial.run(&fill(&source)).exits(0);
    assert_eq!(copies(&trial).len(), 1);
}

/// Nobody can tell a file that was seeded from one that a program has taken for its own since.
#[test]
fn a_seeding_says_what_stays_and_goes_on_later() {
    let seed = ["workspace", "seed", "--project", "demo", "--from"];
    let (trial, source, ended) = soon(|| {
        let trial = Trial::new();
        let source = source(&trial, 250 << 20);
        let work = trial.state().join("projects/demo/work");
        let ended = {
            let seed = [&seed[..], &[source.to_str().unwrap()]].concat();
            interrupted(&trial, &seed, || work.join("a").exists())
        };
        ended.map(|ended| (trial, source, ended))
    });
    let seed = [&seed[..], &[source.to_str().unwrap()]].concat();
    let work = trial.state().join("projects/demo/work");
    assert!(ended.stderr.contains("until then stays"), "{ended:?}");
    assert!(ended.stderr.contains("the same command"), "{ended:?}");
    assert_eq!(names(&work), ["a"]);
    fs::write(source.join("b"), "less").unwrap();
    let again = trial.run(&seed).exits(0);
    assert!(again.stderr.contains("1 entry made, 1 left"), "{again:?}");
    assert_eq!(names(&work), ["a", "b"]);
}

/// Its source says no more and does not end: whoever waits for it must hear, too.
#[test]
fn an_import_of_an_image_leaves_nothing() {
    let trial = Trial::new();
    let archive = fs::read(crate::images::archive(&trial)).unwrap();
    let words = ["image", "import", "-", "--name", "half"];
    let mut command = trial.command(&[&words[..], &["--format", "docker"]].concat());
    let mut child = Running::spawn(command.stdin(std::process::Stdio::piped()));
    let mut stdin = child.0.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, &archive[..archive.len() / 2]).unwrap();
    let staging = trial.state().join("images/tmp");
    let is_under_way = || {
        let copies = entries(&staging)
            .into_iter()
            .map(|it| staging.join(it).join("spool"));
        let sizes = copies.map(|it| it.metadata().map_or(0, |it| it.len()));
        sizes.sum::<u64>() > 0
    };
    until(|| is_under_way().then_some(()));
    kill_process(Pid::from_child(&child.0), Signal::INT).unwrap();
    let answer = child.answer().exits(130);
    assert!(answer.stderr.contains("error[canceled]"), "{answer:?}");
    assert_eq!(entries(&staging), Vec::<String>::new());
    let listed = trial.run(&["image", "ls", "--quiet"]).exits(0).stdout;
    assert_eq!(listed, "");
    drop(stdin);
}
