//! What is pruned, what is collected, and what is never lost.

use std::time::Duration;

use glovebox_model::Code;
use glovebox_snapshot::{Collect, Keep, Sweep, Take};

use crate::ground::{Ground, dir, look, noise, project};

fn full(keep: Keep) -> Collect {
    Collect {
        keep,
        sweep: Sweep::Full,
    }
}

#[test]
fn the_newest_the_young_and_the_labelled_stay() {
    let ground = Ground::new();
    let mut ids = Vec::new();
    for number in 0..6u64 {
        ground.write("file", noise(number, 200_000));
        let mut watch = ();
        let take = Take {
            label: (number == 1).then(|| "release".to_owned()),
            ..Take::new(project(), &mut watch)
        };
        let taken = ground.snapshots().take(&dir(&ground.work), take).unwrap();
        ids.push(taken.snapshot.id);
    }
    let snapshots = ground.snapshots();
    let young = Keep {
        last: None,
        within: Some(Duration::from_secs(3600)),
    };
    assert_eq!(snapshots.collect(full(young)).unwrap().removed, []);
    assert_eq!(
        snapshots.collect(full(Keep::default())).unwrap().removed,
        []
    );
    let last = Keep {
        last: Some(2),
        within: Some(Duration::ZERO),
    };
    let collected = snapshots.collect(full(last)).unwrap();
    assert_eq!(collected.removed.len(), 3);
    assert_eq!(collected.snapshots_left, 3);
    assert_eq!(collected.garbage_chunks, 0);
    assert!(collected.bytes_after < collected.bytes_before * 6 / 10);
    let left = snapshots.list(Some(&project())).unwrap();
    let mut left: Vec<_> = left.snapshots.into_iter().map(|it| it.id).collect();
    left.sort();
    let mut wanted = vec![ids[1].clone(), ids[4].clone(), ids[5].clone()];
    wanted.sort();
    assert_eq!(left, wanted);
    for (id, number) in [(&ids[1], 1u64), (&ids[4], 4), (&ids[5], 5)] {
        ground.restore(id);
        assert_eq!(
            std::fs::read(ground.path("file")).unwrap(),
            noise(number, 200_000)
        );
    }
    let error = snapshots.get(&ids[0]).unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    assert!(!error.hints.is_empty());
}

#[test]
fn chunks_that_another_snapshot_needs_stay_when_one_is_removed() {
    let ground = Ground::new();
    ground.write("shared", noise(1, 600_000));
    ground.write("own", noise(2, 500_000));
    let first = ground.take().snapshot.id;
    ground.write("own", noise(3, 500_000));
    let before = look(&ground.work);
    let second = ground.take().snapshot.id;
    let snapshots = ground.snapshots();
    snapshots.remove(&first).unwrap();
    let thrifty = snapshots.collect(Collect::default()).unwrap();
    assert_eq!(thrifty.packs_removed, 0, "{thrifty:?}");
    assert!(thrifty.garbage_chunks > 0);
    let collected = snapshots.collect(full(Keep::default())).unwrap();
    assert_eq!(collected.garbage_chunks, 0);
    assert!(collected.bytes_after < 1_200_000, "{collected:?}");
    ground.write("own", "");
    ground.restore(&second);
    assert_eq!(look(&ground.work), before);
    assert!(snapshots.verify(&mut ()).unwrap().is_sound());
    snapshots.remove(&second).unwrap();
    let empty = snapshots.collect(Collect::default()).unwrap();
    assert_eq!(empty.bytes_after, 0, "{empty:?}");
}

#[test]
fn many_small_packs_are_merged() {
    let ground = Ground::new();
    let mut last = None;
    for number in 0..20 {
        ground.write(format!("f{number}"), format!("{number}"));
        last = Some(ground.take().snapshot.id);
    }
    assert_eq!(ground.files_in("packs").len(), 20);
    let before = look(&ground.work);
    ground.snapshots().collect(Collect::default()).unwrap();
    assert_eq!(ground.files_in("packs").len(), 1);
    std::fs::remove_file(ground.path("f3")).unwrap();
    ground.restore(&last.unwrap());
    assert_eq!(look(&ground.work), before);
}

#[test]
fn nothing_is_deleted_while_a_snapshot_cannot_be_read() {
    let ground = Ground::new();
    ground.write("a", noise(1, 100_000));
    let taken = ground.take();
    ground.write("a", noise(2, 100_000));
    ground.take();
    let record = ground
        .space
        .join("snapshots/records")
        .join(format!("{}.json", taken.snapshot.id));
    let good = std::fs::read(&record).unwrap();
    std::fs::write(&record, b"{}").unwrap();
    let packs = ground.files_in("packs");
    let error = ground
        .snapshots()
        .collect(full(Keep::default()))
        .unwrap_err();
    assert!(
        error.message.contains(taken.snapshot.id.as_str()),
        "{error}"
    );
    assert_eq!(ground.files_in("packs"), packs);
    // The others are still listed.
    let listed = ground.snapshots().list(None).unwrap();
    assert_eq!((listed.snapshots.len(), listed.damaged.len()), (1, 1));
    std::fs::write(&record, good).unwrap();
    ground.restore(&taken.snapshot.id);
    assert_eq!(std::fs::read(ground.path("a")).unwrap(), noise(1, 100_000));
}
