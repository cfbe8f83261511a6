//! Limits are in force before an exec is known.

use glovebox_backend::Ending;
use glovebox_model::{LimitKind, Millis};

use crate::house::{Rooms, Yard, order, profile, run, shell};
use crate::warm::bound::warm;

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
    // On a busy host a program may say nothing before its time is up; it has more of it then.
    let said = [400, 3000, 15_000].into_iter().any(|wall_ms| {
        profile.limits.wall_ms = Millis(wall_ms);
        let rooms = Rooms::new(&yard.house, &wall_ms.to_string());
        let warm = warm(&yard, &profile);
        // Waiting is nobody's time.
        std::thread::sleep(std::time::Duration::from_millis(wall_ms + 200));
        let bound = warm.bind(&rooms.room()).unwrap();
        let told = run(bound, &profile, &shell("echo up; sleep 600"), None).unwrap();
        assert_eq!(told.ended.ending, Ending::TimedOut);
        assert!(told.ended.duration >= profile.limits.wall_ms.duration());
        told.stdout == "up\n"
    });
    assert!(said);
}

/// Of a process with one thread, in milliseconds.
fn processor_time(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    let nanoseconds: Option<u64> = text.split(' ').next().and_then(|it| it.parse().ok());
    nanoseconds.unwrap_or_default() / 1_000_000
}

pub(crate) fn nothing_from_before_is_counted() {
    let yard = Yard::new();
    let profile = profile();
    let rooms = Rooms::new(&yard.house, "a");
    let mut warm = crate::warm::python::warm(&yard, &profile);
    assert!(warm.is_alive());
    let before_ms = processor_time(warm.pids()[2]);
    let bound = warm.bind(&rooms.room()).unwrap();
    let order = crate::warm::python::program("pass");
    let told = run(bound, &profile, &order, None).unwrap();
    assert_eq!(told.ended.ending, Ending::Exited { code: 0 }, "{told:?}");
    // Starting it took more than that; on a slow host both take longer.
    let cpu_ms = told.ended.usage.cpu_ms;
    assert!(
        cpu_ms <= 15 || cpu_ms < before_ms,
        "{cpu_ms} of {before_ms}"
    );
    assert!(told.ended.usage.max_pids >= 1, "{:?}", told.ended.usage);
    assert_eq!(told.ended.limit_hit, None);
}
