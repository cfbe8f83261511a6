//! Bits rot and files are cut off: that is an error that names what, never a panic and never other
//! bytes than were stored.

use std::fs;
use std::path::{Path, PathBuf};

use glovebox_model::Code;

use crate::ground::{Ground, look, noise};

fn rounds(short: u64) -> u64 {
    let asked = std::env::var("GLOVEBOX_TEST_SNAPSHOT_CYCLES").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(short)
}

fn spoil(path: &Path, seed: u64) -> Vec<u8> {
    let good = fs::read(path).unwrap();
    let mut bad = good.clone();
    let mut random = noise(seed, 16).into_iter().map(u64::from);
    let mut number = |below: usize| {
        let value = random
            .by_ref()
            .take(4)
            .fold(0, |sum, byte| sum * 256 + byte);
        usize::try_from(value).unwrap() % below
    };
    let at = number(bad.len());
    match seed % 4 {
        0 => bad.truncate(at),
        1 => bad[at] ^= 1 << number(8),
        2 => bad[at..].fill(0),
        _ => bad.extend_from_slice(b"more"),
    }
    if bad == good {
        bad[at] ^= 1;
    }
    fs::write(path, &bad).unwrap();
    good
}

#[test]
fn a_damaged_store_gives_errors_or_the_right_bytes_and_nothing_else() {
    let ground = Ground::new();
    ground.write("text", "hello\n".repeat(10_000));
    ground.write("noise", noise(1, 400_000));
    for number in 0..100 {
        ground.write(format!("small/{number}"), format!("{number}"));
    }
    let before = look(&ground.work);
    let id = ground.take().snapshot.id;
    let targets: Vec<PathBuf> = ["packs", "records"]
        .iter()
        .flat_map(|below| ground.files_in(below))
        .collect();
    let fork = ground.space.join("fork");
    let mut noticed = 0;
    for seed in 0..rounds(60) {
        let target = &targets[usize::try_from(seed).unwrap() / 4 % targets.len()];
        let good = spoil(target, seed);
        fs::create_dir(&fork).unwrap();
        let verified = ground.snapshots().verify(&mut ()).unwrap();
        match ground.restore_to(&id, &fork) {
            Ok(_) => assert_eq!(look(&fork), before, "seed {seed}"),
            Err(error) => {
                assert_eq!(error.code, Code::StoreUnavailable, "seed {seed}: {error}");
                assert!(!error.retry.allowed && !error.hints.is_empty());
                assert!(
                    error.to_string().contains(id.as_str()),
                    "seed {seed}: {error}"
                );
                noticed += 1;
                assert!(!verified.is_sound(), "seed {seed}: {error}");
                assert!(verified.hurts.iter().any(|hurt| hurt.snapshot == id));
            }
        }
        for (path, seen) in look(&fork) {
            // Whatever came back under its name is right.
            if seen.kind == "file" && !path.starts_with(b".glovebox-") {
                let right = before[&path].contents == seen.contents;
                assert!(right, "seed {seed}: {}", String::from_utf8_lossy(&path));
            }
        }
        fs::remove_dir_all(&fork).unwrap();
        fs::write(target, good).unwrap();
    }
    assert!(noticed > 0);
    let verified = ground.snapshots().verify(&mut ()).unwrap();
    assert!(verified.is_sound(), "{:?}", verified.damage);
}

#[test]
fn one_damaged_chunk_is_told_by_snapshot_and_path_and_hurts_no_other() {
    let ground = Ground::new();
    ground.write("victim", noise(1, 10_000));
    let hurt = ground.take().snapshot.id;
    fs::remove_file(ground.path("victim")).unwrap();
    ground.write("other", noise(2, 10_000));
    let whole = ground.take().snapshot.id;
    // The bytes do not compress, so they stand in a pack as they are.
    let needle = &noise(1, 10_000)[..64];
    let mut spoiled = 0;
    for pack in ground.files_in("packs") {
        let mut bytes = fs::read(&pack).unwrap();
        if let Some(at) = bytes.windows(64).position(|window| window == needle) {
            bytes[at + 5_000] ^= 0x80;
            fs::write(&pack, bytes).unwrap();
            spoiled += 1;
        }
    }
    assert_eq!(spoiled, 1);
    let error = ground.restore_to(&hurt, &ground.work).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("`victim`") && text.contains(hurt.as_str()),
        "{text}"
    );
    assert_eq!(
        fs::read(ground.path("other")).unwrap(),
        noise(2, 10_000),
        "kept: {text}"
    );
    ground.restore(&whole);
    let verified = ground.snapshots().verify(&mut ()).unwrap();
    assert_eq!(verified.damage.len(), 1);
    assert_eq!(verified.hurts.len(), 1);
    assert_eq!(verified.hurts[0].snapshot, hurt);
    assert_eq!(
        verified.hurts[0].path.as_ref().unwrap().as_bytes(),
        b"victim"
    );
}
