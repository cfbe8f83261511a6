//! How much may be written to a layer, and who says so.

use glovebox_backend::{Ending, Layer};
use glovebox_model::{Bytes, Count, Grade, Guarantee, LimitKind, Result};
use glovebox_workspace::change::{Base, Held, ReadLimits, apply, read};
use glovebox_workspace::{Dir, RelPath};

use crate::house::Told;
use crate::overlay::ground::{Ground, applied};

const MIB: u64 = 1 << 20;

/// The workspace is larger than what may be written; a little of it is.
pub(crate) fn a_layer_on_disk_is_counted_and_its_workspace_is_not() {
    let mut ground = Ground::new();
    ground.profile.limits.disk_bytes = Bytes::mib(8);
    std::fs::write(ground.work().join("large"), vec![1u8; 30 << 20]).unwrap();
    let held = ground.hold("one");
    let said = ground.run(&held, "head -c 4M /dev/zero > fine; sleep 0.3; echo fits");
    assert_eq!(said.ended.ending, Ending::Exited { code: 0 }, "{said:?}");
    assert_eq!(said.ended.limit_hit, None);
    let held = ground.hold("two");
    let line = "i=0; while :; do head -c 1M /dev/zero > f$i; i=$((i + 1)); sleep 0.01; done";
    let said = ground.run(&held, line);
    assert_eq!(said.ended.ending, Ending::LimitKilled, "{said:?}");
    assert_eq!(said.ended.limit_hit, Some(LimitKind::Disk));
    // A copy of what lies below counts as well: it takes that much.
    let held = ground.hold("three");
    let said = ground.run(&held, "printf x >> large; sleep 60");
    assert_eq!(said.ended.limit_hit, Some(LimitKind::Disk), "{said:?}");
    for name in ["one", "two", "three"] {
        Held::remove(&ground.shelf, name).unwrap();
    }
}

/// On a layer they belong to a device that nobody outside has heard of.
pub(crate) fn files_without_a_name_are_counted() {
    let mut ground = Ground::new();
    ground.profile.limits.disk_bytes = Bytes::mib(8);
    let held = ground.hold("one");
    let line = "python3 -c \"
import os, time
held = []
while True:
    f = open('f', 'wb'); os.unlink('f'); held.append(f)
    f.write(bytes(1 << 20)); f.flush(); time.sleep(0.02)
\"";
    let said = ground.run(&held, line);
    assert_eq!(said.ended.ending, Ending::LimitKilled, "{said:?}");
    assert_eq!(said.ended.limit_hit, Some(LimitKind::Disk));
}

fn in_memory(ground: &Ground, files: u64, line: &str) -> (Result<Told>, Option<Dir>) {
    let layer = Layer::Memory {
        bytes: 8 * MIB,
        files,
    };
    let (prepared, tray) = ground.open(layer).unwrap();
    let told = ground.see(prepared, &[], line);
    (told, tray.take())
}

pub(crate) fn a_layer_in_memory_is_limited_by_the_kernel() {
    let ground = Ground::new();
    ground.furnish();
    let base = Base::take();
    let before = ground.tree();
    let line = "echo more >> a; rm -r d; mkdir n; echo new > n/new; chmod 600 b
        head -c 20M /dev/zero > large; echo $?; stat -c %s large; rm large";
    let (told, layer) = in_memory(&ground, 100, line);
    let told = told.unwrap();
    assert_eq!(told.ended.ending, Ending::Exited { code: 0 }, "{told:?}");
    let lines: Vec<&str> = told.stdout.lines().collect();
    assert_eq!(lines[0], "1");
    let size: u64 = lines[1].parse().unwrap();
    assert!((7 * MIB..=8 * MIB).contains(&size), "{size}");
    assert!(told.stderr.contains("No space left on device"), "{told:?}");
    // The sandbox is gone, and what it wrote is there for as long as it is held.
    let upper = layer
        .unwrap()
        .open_dir(&RelPath::new("upper").unwrap())
        .unwrap();
    assert_eq!(ground.tree(), before);
    let changes = read(&ground.lower, &upper, ReadLimits::default()).unwrap();
    let home = Dir::open_trusted(&ground.yard.house.state()).unwrap();
    applied(&apply(&home, &ground.lower, &upper, &changes, &base).unwrap());
    let after = ground.tree();
    assert_eq!(after["a"], "file 100644 1 19 one\ntwo\nthree\nmore\n");
    assert_eq!(after["b"], "file 100600 1 2 b\n");
    assert_eq!(after["n/new"], "file 100644 1 4 new\n");
    assert!(!after.contains_key("d") && !after.contains_key("large"));
    let owner = rustix::fs::stat(ground.work()).unwrap();
    let made = rustix::fs::stat(ground.work().join("n/new")).unwrap();
    assert_eq!((made.st_uid, made.st_gid), (owner.st_uid, owner.st_gid));

    let (told, _) = in_memory(&ground, 100, "head -c 20M /dev/zero > large");
    assert_eq!(told.unwrap().ended.limit_hit, Some(LimitKind::Disk));

    let line = "i=0; while true > f$i; do i=$((i + 1)); done; echo $i; exit 1";
    let (told, _) = in_memory(&ground, 50, line);
    let told = told.unwrap();
    let made: u64 = told.stdout.trim().parse().unwrap();
    assert_eq!(told.ended.limit_hit, Some(LimitKind::Inodes));
    assert!((40..=51).contains(&made), "{told:?}");
}

pub(crate) fn memory_is_graded_as_what_it_is() {
    let mut ground = Ground::new();
    let grade = |ground: &Ground, layer: Layer<'_>| {
        let (prepared, tray) = ground.open(layer).unwrap();
        let grade = glovebox_backend::Sandbox::isolation(&prepared).0[&Guarantee::DiskLimit];
        drop(glovebox_backend::Sandbox::dismiss(Box::new(prepared)));
        assert!(tray.take().is_none());
        grade
    };
    let memory = Layer::in_memory(&ground.profile.limits);
    assert_eq!(grade(&ground, memory), Grade::Kernel);
    let held = ground.hold("one");
    assert_eq!(grade(&ground, Layer::Disk(held.layer())), Grade::Supervised);
    // Demanded of the kernel, a layer on disk will not do.
    ground.profile.require.insert(Guarantee::DiskLimit);
    ground.profile.limits.disk_files = Count(10);
    assert_eq!(grade(&ground, memory), Grade::Kernel);
    assert!(ground.open(Layer::Disk(held.layer())).is_err());
}
