//! `glovebox-fuzz run [SECONDS] [TARGET...]` shares the seconds among the targets, each in a process
//! of its own with little memory; an input that ends or stops one is kept in `artifacts`.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use glovebox_fuzz::Target;
use glovebox_fuzz::pursue::{Until, pursue};
use glovebox_fuzz::targets::ALL;
use rustix::process::{Resource, Rlimit, setrlimit};

/// Nothing here needs a tenth of it.
const MEMORY: u64 = 1 << 30;
/// For one input; they take a millisecond.
const PATIENCE: Duration = Duration::from_secs(10);

static DONE: AtomicU64 = AtomicU64::new(0);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ended = match words.as_slice() {
        ["run", rest @ ..] => run(rest),
        ["one", target, millis, seed, file] => one(target, millis, seed, Path::new(file)),
        ["seeds", target, directory] => seeds(target, Path::new(directory)),
        ["replay", target, files @ ..] => replay(target, files),
        ["list"] => {
            ALL.iter().for_each(|target| println!("{}", target.name));
            Ok(())
        }
        _ => Err(
            "usage: glovebox-fuzz run [SECONDS] [TARGET...] | replay TARGET FILE... | \
                  seeds TARGET DIRECTORY | list"
                .to_owned(),
        ),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn named(name: &str) -> Result<&'static Target, String> {
    Target::named(name).ok_or_else(|| format!("there is no target `{name}`"))
}

fn run(words: &[&str]) -> Result<(), String> {
    let (seconds, names) = match words.split_first() {
        Some((first, rest)) if first.parse::<u64>().is_ok() => (first.parse().unwrap_or(10), rest),
        _ => (10u64, words),
    };
    let targets: Vec<&Target> = match names {
        [] => ALL.iter().collect(),
        names => names
            .iter()
            .map(|name| named(name))
            .collect::<Result<_, _>>()?,
    };
    let millis = (seconds * 1000 / targets.len() as u64).max(100);
    let seed = match std::env::var("GLOVEBOX_TEST_SEED") {
        Ok(seed) => seed,
        Err(_) => "20261115".to_owned(),
    };
    println!(
        "seed {seed}, {millis} ms for each of {} targets",
        targets.len()
    );
    let failed: Vec<&str> = targets
        .iter()
        .filter(|target| !apart(target, millis, &seed))
        .map(|target| target.name)
        .collect();
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!("FAILED: {}", failed.join(", "))),
    }
}

/// In a process of its own; false when it did not end well.
fn apart(target: &Target, millis: u64, seed: &str) -> bool {
    let Ok(current) = tempfile::NamedTempFile::new() else {
        return false;
    };
    let status = std::env::current_exe().and_then(|own| {
        Command::new(own)
            .args(["one", target.name, &millis.to_string(), seed])
            .arg(current.path())
            .status()
    });
    if status.as_ref().is_ok_and(std::process::ExitStatus::success) {
        return true;
    }
    let kept = fs::read(current.path())
        .map_err(|error| error.to_string())
        .and_then(|input| {
            let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("artifacts")
                .join(target.name);
            let path = directory.join(&blake3::hash(&input).to_hex()[..16]);
            let kept = fs::create_dir_all(&directory).and_then(|()| fs::write(&path, input));
            kept.map(|()| path).map_err(|error| error.to_string())
        });
    match kept {
        Ok(path) => eprintln!(
            "{}: {status:?}; again with `glovebox-fuzz replay {} {}`",
            target.name,
            target.name,
            path.display()
        ),
        Err(error) => eprintln!("{}: {status:?}; its input is lost: {error}", target.name),
    }
    false
}

fn one(target: &str, millis: &str, seed: &str, file: &Path) -> Result<(), String> {
    let target = named(target)?;
    let number = |text: &str| {
        text.parse::<u64>()
            .map_err(|error| format!("`{text}`: {error}"))
    };
    let (millis, seed) = (number(millis)?, number(seed)?);
    let limit = Rlimit {
        current: Some(MEMORY),
        maximum: Some(MEMORY),
    };
    setrlimit(Resource::As, limit).map_err(|error| error.to_string())?;
    let file = File::options()
        .write(true)
        .open(file)
        .map_err(|error| error.to_string())?;
    std::thread::spawn(watch);
    let pursued = pursue(
        target,
        seed,
        Until::Time(Duration::from_millis(millis)),
        &mut |input| {
            // Without it a failure would be one that nobody can repeat.
            let written = file.write_all_at(input, 0);
            written
                .and_then(|()| file.set_len(input.len() as u64))
                .expect("note the input");
            DONE.fetch_add(1, Ordering::Relaxed);
        },
    );
    println!(
        "{:<9} {:>8} inputs, {:>7} taken as sound, {:>5} different answers",
        target.name, pursued.inputs, pursued.taken, pursued.answers
    );
    match pursued.taken {
        0 => Err(format!(
            "{}: nothing was taken, so nothing was reached",
            target.name
        )),
        _ => Ok(()),
    }
}

/// Ends the process when one input takes too long.
fn watch() {
    loop {
        let before = DONE.load(Ordering::Relaxed);
        std::thread::sleep(PATIENCE);
        if before == DONE.load(Ordering::Relaxed) && before != 0 {
            eprintln!("one input takes longer than {PATIENCE:?}");
            std::process::abort();
        }
    }
}

fn replay(target: &str, files: &[&str]) -> Result<(), String> {
    let target = named(target)?;
    for path in files {
        let bytes = fs::read(path).map_err(|error| format!("{path}: {error}"))?;
        println!("{path}: {}", target.answer(&bytes).0);
    }
    Ok(())
}

fn seeds(target: &str, directory: &Path) -> Result<(), String> {
    let target = named(target)?;
    let write = |path: PathBuf, bytes: &[u8]| fs::write(path, bytes);
    let written = fs::create_dir_all(directory).and_then(|()| {
        (target.seeds)()
            .iter()
            .enumerate()
            .try_for_each(|(number, seed)| write(directory.join(format!("seed-{number}")), seed))
    });
    written.map_err(|error| error.to_string())
}
