//! Limits and accounts of one exec among many.

use glovebox_backend::{Ending, Kept};
use glovebox_model::LimitKind;

use crate::house::{Rooms, Yard, order, profile, shell};
use crate::kept::stays::{keep, run};

pub(crate) fn each_exec_pays_for_itself() {
    let yard = Yard::new();
    let profile = profile();
    let rooms = Rooms::new(&yard.house, "a");
    let mut kept = keep(&yard, &profile);
    let busy = "b = bytearray(30 << 20)
import time
end = time.process_time() + .3
while time.process_time() < end: pass";
    let busy = order(&["python3", "-c", busy], &[]);
    let told = run(&mut kept, &rooms, &profile, &busy).unwrap();
    assert_eq!(told.ended.ending, Ending::Exited { code: 0 }, "{told:?}");
    assert!(told.ended.usage.cpu_ms >= 300, "{told:?}");
    assert!(told.ended.usage.max_memory_bytes >= 30 << 20, "{told:?}");
    let calm = run(&mut kept, &rooms, &profile, &shell("true")).unwrap();
    assert!(calm.ended.usage.cpu_ms < 300, "{calm:?}");
    assert!(calm.ended.usage.max_memory_bytes < 30 << 20, "{calm:?}");
    // A limit that the first one met is not the second one's.
    let many = "i=0; while [ $i -lt 100 ]; do sleep 600 & i=$((i+1)); done";
    let told = run(&mut kept, &rooms, &profile, &shell(many)).unwrap();
    assert_eq!(told.ended.limit_hit, Some(LimitKind::Pids), "{told:?}");
    let calm = run(&mut kept, &rooms, &profile, &shell("true")).unwrap();
    assert_eq!(calm.ended.limit_hit, None, "{calm:?}");
}

pub(crate) fn out_of_memory_is_the_execs_that_was() {
    let yard = Yard::new();
    let profile = profile();
    let rooms = Rooms::new(&yard.house, "a");
    let mut kept = keep(&yard, &profile);
    let greedy = order(&["python3", "-c", "bytearray(200 << 20)"], &[]);
    let told = run(&mut kept, &rooms, &profile, &greedy).unwrap();
    assert_eq!(told.ended.ending, Ending::LimitKilled, "{told:?}");
    assert_eq!(told.ended.limit_hit, Some(LimitKind::Memory));
    assert!(kept.is_alive());
    let calm = run(&mut kept, &rooms, &profile, &shell("exit 3")).unwrap();
    assert_eq!(calm.ended.ending, Ending::Exited { code: 3 });
    assert_eq!(calm.ended.limit_hit, None, "{calm:?}");
}
