//! Who waits for whom when several snapshots of a space are taken at once.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use glovebox_model::{Code, Result};
use glovebox_snapshot::{Progress, Take, TakeLimits, Taken};

use crate::ground::{Ground, dir, noise, project};

/// Takes one, and lets somebody else do something while it is being taken.
fn meanwhile(ground: &Ground, quota: Option<u64>, mut other: impl FnMut()) -> Result<Taken> {
    let mut first = true;
    let mut watch = |_: Progress| {
        if std::mem::take(&mut first) {
            other();
        }
        ControlFlow::Continue(())
    };
    let take = Take {
        limits: within(quota),
        ..Take::new(project(), &mut watch)
    };
    ground.snapshots().take(&dir(&ground.work), take)
}

fn within(stored_bytes: Option<u64>) -> TakeLimits {
    TakeLimits {
        stored_bytes,
        ..TakeLimits::default()
    }
}

#[test]
fn without_a_quota_nobody_waits_for_another_workspace() {
    let ground = Ground::new();
    ground.write("noise", noise(1, 100_000));
    let mut inner = None;
    let outer = meanwhile(&ground, None, || {
        let mut wanted = ();
        let other = Take::new("other".parse().unwrap(), &mut wanted);
        inner = Some(ground.snapshots().take(&dir(&ground.work), other));
    });
    let (outer, inner) = (outer.unwrap(), inner.unwrap().unwrap());
    // Both are whole, whichever of them stored what they have in common.
    let verified = ground.snapshots().verify(&mut ()).unwrap();
    assert!(verified.hurts.is_empty(), "{verified:?}");
    assert_ne!(outer.snapshot.id, inner.snapshot.id);
}

#[test]
fn within_a_quota_whoever_waits_for_another_can_give_up() {
    const QUOTA: Option<u64> = Some(100 << 20);
    let ground = Ground::new();
    ground.write("noise", noise(1, 100_000));
    let mut inner = None;
    let outer = meanwhile(&ground, QUOTA, || {
        let since = Instant::now();
        let mut looked = 0;
        let mut gone = |_: Progress| {
            looked += 1;
            match looked > 3 {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let other = Take {
            limits: within(QUOTA),
            ..Take::new("other".parse().unwrap(), &mut gone)
        };
        let taken = ground.snapshots().take(&dir(&ground.work), other);
        inner = Some((taken, since.elapsed()));
    });
    outer.unwrap();
    let (given_up, after) = inner.unwrap();
    assert_eq!(given_up.unwrap_err().code, Code::Canceled);
    assert!(after < Duration::from_secs(100), "{after:?}");
}
