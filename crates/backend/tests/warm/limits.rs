//! Limits are in force before an exec is known.

use glovebox_backend::Ending;
use glovebox_model::{LimitKind, Millis};

use crate::bound::warm;
use crate::house::{Rooms, Yard, order, profile, run, shell};

pub(crate) fn memory_is_limited() {
    let yard = Yard::new();
    let profile = profile();
    let rooms = Rooms::new(&yard.house, "a");
    let bound = warm(&yard, &profile).bind(&rooms.room()).unwrap();
    let greedy = order(
        &["python3", "-c", "b = bytearray(200 << 20); print(len(b))"],
        &[],
    );
    let told = run(bound, &profile, &greedy, None).unwrap();
    assert_eq!(told.ended.limit_hit, Some(LimitKind::Memory), "{told:?}");
    assert_eq!(told.ended.ending, Ending::LimitKilled);
    assert_eq!(told.stdout, "");
}

pub(crate) fn processes_are_limited() {
    let yard = Yard::new();
    let profile = profile();
    let rooms = Rooms::new(&yard.house, "a");
    let bound = warm(&yard, &profile).bind(&rooms.room()).unwrap();
    let many = "i=0; while [ $i -lt 100 ]; do sleep 600 & i=$((i+1)); done; echo all";
    let told = run(bound, &profile, &shell(many), None).unwrap();
    assert_eq!(told.ended.limit_hit, Some(LimitKind::Pids), "{told:?}");
    assert_eq!(told.stdout, "");
}

pub(crate) fn time_is_counted_from_the_order() {
    let yard = Yard::new();
    let mut profile = profile();
    profile.limits.wall_ms = Millis(400);
    let rooms = Rooms::new(&yard.house, "a");
    let warm = warm(&yard, &profile);
    // Waiting is nobody's time.
    std::thread::sleep(std::time::Duration::from_millis(600));
    let bound = warm.bind(&rooms.room()).unwrap();
    let told = run(bound, &profile, &shell("echo up; sleep 600"), None).unwrap();
    assert_eq!(told.ended.ending, Ending::TimedOut);
    assert_eq!(told.stdout, "up\n");
    assert!(told.ended.duration >= profile.limits.wall_ms.duration());
}

pub(crate) fn nothing_from_before_is_counted() {
    let yard = Yard::new();
    let profile = profile();
    let rooms = Rooms::new(&yard.house, "a");
    let mut warm = crate::python::warm(&yard, &profile);
    assert!(warm.is_alive());
    let bound = warm.bind(&rooms.room()).unwrap();
    let order = crate::python::program("pass");
    let told = run(bound, &profile, &order, None).unwrap();
    assert_eq!(told.ended.ending, Ending::Exited { code: 0 }, "{told:?}");
    // Starting it took more than that.
    assert!(told.ended.usage.cpu_ms <= 15, "{:?}", told.ended.usage);
    assert!(told.ended.usage.max_pids >= 1, "{:?}", told.ended.usage);
    assert_eq!(told.ended.limit_hit, None);
}
