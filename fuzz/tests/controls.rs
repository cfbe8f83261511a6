//! The loop can fail: readers with a known fault are found out by it, with the same words, seeds and
//! mutations as the real ones.

use std::cell::RefCell;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use glovebox_fuzz::ground::{Ground, SECRET};
use glovebox_fuzz::pursue::{Until, pursue};
use glovebox_fuzz::targets::{ALL, as_it_is, pack, paths, tar};
use glovebox_fuzz::{Answer, Target};

const INPUTS: u64 = 20_000;

thread_local! {
    static GROUND: RefCell<Ground> = RefCell::new(Ground::new());
}

/// Ends where the first input does that the target must not survive; None if there is none.
fn found(target: &Target) -> Option<u64> {
    let mut inputs = 0;
    let silent = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let ended = catch_unwind(AssertUnwindSafe(|| {
        pursue(target, 1, Until::Inputs(INPUTS), &mut |_| inputs += 1)
    }));
    std::panic::set_hook(silent);
    ended.is_err().then_some(inputs)
}

/// Joins paths as strings, as a hasty server does.
fn joins(bytes: &[u8]) -> Result<String, String> {
    GROUND.with_borrow(|ground| {
        let path = ground.lead(
            bytes
                .split(|byte| *byte == b'\n')
                .next_back()
                .unwrap_or_default(),
        );
        let path = path.get(1..).unwrap_or_default();
        let path = ground.inside().join(std::ffi::OsStr::from_bytes(path));
        let read = fs::read(path).map_err(|error| error.to_string())?;
        assert_ne!(read, SECRET, "the secret was read");
        Ok("read".to_owned())
    })
}

/// Unpacks names as they stand there.
fn unpacks(bytes: &[u8]) -> Result<String, String> {
    GROUND.with_borrow(|ground| {
        let archive = tar::lead(bytes.get(1..).unwrap_or_default());
        let mut archive = ::tar::Archive::new(archive.as_slice());
        for entry in archive
            .entries()
            .map_err(|error| error.to_string())?
            .take(16)
        {
            let entry = entry.map_err(|error| error.to_string())?;
            let name = entry.path_bytes().into_owned();
            if !name.is_empty() && !name.contains(&0) && name.len() < 200 {
                let path = ground.inside().join(std::ffi::OsStr::from_bytes(&name));
                // Only this far: a control makes nothing that somebody has to remove.
                let parent = path.parent().and_then(|it| it.canonicalize().ok());
                let stays = parent.is_none_or(|it| it.starts_with(ground.inside()));
                assert!(stays, "written outside");
            }
        }
        Ok("unpacked".to_owned())
    })
}

/// Believes a length.
fn believes(bytes: &[u8]) -> Result<String, String> {
    let at = bytes.len().checked_sub(56).ok_or("short")?;
    let mut number = [0u8; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    let begins = usize::try_from(u64::from_le_bytes(number)).unwrap_or(usize::MAX);
    Ok(format!("{}", bytes[begins..at].len()))
}

#[test]
fn readers_with_a_known_fault_are_found_out() {
    for (name, target) in [
        (
            "joins",
            Target {
                run: joins,
                ..paths::TARGET
            },
        ),
        (
            "unpacks",
            Target {
                run: unpacks,
                ..tar::TARGET
            },
        ),
        (
            "believes",
            Target {
                run: believes,
                ..pack::TARGET
            },
        ),
    ] {
        let after = found(&target);
        assert!(after.is_some(), "`{name}` survived {INPUTS} inputs");
        println!("{name}: found out by input {after:?}");
    }
}

#[test]
fn the_same_seed_makes_the_same_inputs() {
    let inputs = |seed| {
        let mut all = blake3::Hasher::new();
        let silent = Target {
            run: |_| Err("no".to_owned()),
            mend: as_it_is,
            ..paths::TARGET
        };
        pursue(&silent, seed, Until::Inputs(500), &mut |input| {
            all.update(input);
        });
        all.finalize()
    };
    assert_eq!(inputs(7), inputs(7));
    assert_ne!(inputs(7), inputs(8));
}

#[test]
fn every_target_takes_one_of_its_seeds_at_least() {
    for target in ALL {
        let answers: Vec<Answer> = (target.seeds)()
            .iter()
            .map(|it| target.answer(it))
            .collect();
        let taken = answers.iter().filter(|it| it.is_taken()).count();
        assert_ne!(taken, 0, "{}: {answers:?}", target.name);
    }
}
