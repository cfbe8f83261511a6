//! One who disturbs and one who works.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use glovebox_workspace::Dir;
use rustix::fs::{RenameFlags, renameat_with};

use crate::files::place::{Place, place_in_memory, rel};

const CONTROL_ATTEMPTS: u64 = 1_000_000;

pub(crate) fn attempts() -> u64 {
    let set = std::env::var("GLOVEBOX_TEST_RACE_ATTEMPTS");
    let set = set.or_else(|_| std::env::var("GLOVEBOX_TEST_RACES")).ok();
    set.map_or(500, |text| text.parse().expect("a number of attempts"))
}

/// What an attempt came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Came {
    /// To what lies outside.
    Out,
    /// To what it was meant for, or that cannot be told.
    There,
    /// To nothing.
    Nowhere,
}

impl Came {
    pub(crate) fn out_if(escaped: bool) -> Self {
        if escaped { Self::Out } else { Self::There }
    }
}

/// Runs `attempt` while `disturb` runs in a loop on another thread; true means that it escaped.
fn race(
    limit: u64,
    disturb: impl Fn() + Sync,
    mut attempt: impl FnMut(u64) -> bool,
) -> Option<u64> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                disturb();
            }
        });
        // Also when an attempt panics, or the other thread would be waited for without end.
        let _stop = StopOnDrop(&stop);
        (0..limit).find(|n| attempt(*n))
    })
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub(crate) fn exchange(dir: &Dir, a: &str, b: &str) {
    let _ = renameat_with(dir, a, dir, b, RenameFlags::EXCHANGE);
}

/// `dir` and `link` change places: one is real, the other leads out. Also the real one by handle.
pub(crate) fn directory_race() -> (Place, Dir) {
    let place = place_in_memory();
    place.file("dir/inner", b"inside");
    place.link(&place.outside, "link");
    let real = place.dir.open_dir(&rel("dir")).unwrap();
    (place, real)
}

pub(crate) fn seems_inside(place: &Place, path: &Path) -> bool {
    path.canonicalize()
        .is_ok_and(|real| real.starts_with(&place.inside))
}

/// At least so many attempts as are asked for, and on until one came to what it was meant for: who
/// disturbs may sleep while the link stands where the directory should, and all are refused.
pub(crate) fn assert_race(
    place: &Place,
    disturb: impl Fn() + Sync,
    mut ours: impl FnMut(u64) -> Came,
    control: impl FnMut(u64) -> bool,
) {
    let (mut escaped, mut arrived) = (None, false);
    let ended = race(attempts().max(CONTROL_ATTEMPTS), &disturb, |n| {
        match ours(n) {
            Came::Out => escaped = Some(n),
            Came::There => arrived = true,
            Came::Nowhere => {}
        }
        escaped.is_some() || arrived && n + 1 >= attempts()
    });
    assert_eq!(escaped, None, "escaped");
    assert!(ended.is_some(), "no attempt came to what it was meant for");
    place.assert_outside_untouched();
    let control = race(CONTROL_ATTEMPTS, &disturb, control);
    let at = control.expect("the control never escaped: no race was run");
    eprintln!(
        "{} attempts, none escaped; the control did in attempt {at}",
        ended.unwrap_or_default() + 1
    );
}
