//! Entries that stand before those of the workspace.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use glovebox_backend::{Layer, Layers, Place, Tree};
use glovebox_model::Access;
use glovebox_workspace::Dir;

use crate::overlay::ground::Ground;

/// Beside the workspace: what was approved of `lib.sh` and `sub/lib.sh`, and a cover for `key`.
fn over(ground: &Ground) -> Dir {
    let path = ground.yard.house.path().join("over");
    fs::create_dir_all(path.join("sub")).unwrap();
    for name in ["lib.sh", "sub/lib.sh"] {
        fs::write(path.join(name), "echo approved\n").unwrap();
    }
    fs::write(path.join("key"), "").unwrap();
    fs::set_permissions(path.join("key"), fs::Permissions::from_mode(0o0)).unwrap();
    Dir::open_trusted(&path).unwrap()
}

fn plant(work: &Path) {
    fs::create_dir(work.join("sub")).unwrap();
    for name in ["lib.sh", "sub/lib.sh", "key", "plain"] {
        fs::write(work.join(name), "echo first\n").unwrap();
    }
}

pub(crate) fn what_stands_before_a_name_stays_whatever_becomes_of_the_name() {
    let ground = Ground::new();
    let work = ground.work();
    plant(&work);
    let over = over(&ground);
    let held = ground.hold("one");
    let layers = Layers {
        over: Some(&over),
        writes: Layer::Disk(held.layer()),
    };
    let (prepared, _) = ground.open(layers).unwrap();
    held.begin().unwrap();
    let (stdin, mut go) = std::io::pipe().unwrap();
    let started = ground
        .yard
        .house
        .path()
        .join("held/one/layer/upper/started");
    let others = std::thread::spawn(move || {
        while !started.exists() {
            std::thread::yield_now();
        }
        let evil = |name: &str| fs::write(work.join(name), "echo evil\n").unwrap();
        // In place, by rename, by a second name, and with the directory above.
        evil("lib.sh");
        evil("new");
        fs::rename(work.join("new"), work.join("lib.sh")).unwrap();
        fs::rename(work.join("lib.sh"), work.join("key")).unwrap();
        fs::hard_link(work.join("key"), work.join("lib.sh")).unwrap();
        fs::create_dir(work.join("sub2")).unwrap();
        evil("sub2/lib.sh");
        fs::rename(work.join("sub"), work.join("old")).unwrap();
        fs::rename(work.join("sub2"), work.join("sub")).unwrap();
        go.write_all(b"go\n").unwrap();
    });
    let line = "touch started; read go
        sh lib.sh; sh sub/lib.sh; (cd sub && sh lib.sh); sh /proc/self/cwd/lib.sh
        cat key 2> /dev/null || echo denied; cat plain
        echo mine > lib.sh; cat lib.sh";
    let said = ground
        .see_with(prepared, &[held.upper()], Some(stdin.into()), line)
        .unwrap();
    others.join().unwrap();
    assert_eq!(
        said.stdout, "approved\napproved\napproved\napproved\ndenied\necho first\nmine\n",
        "{said:?}"
    );
}

pub(crate) fn a_workspace_that_is_only_read_can_be_covered_too() {
    let mut ground = Ground::new();
    plant(&ground.work());
    ground.profile.workspace = Access::Ro;
    let over = over(&ground);
    let mut spec = ground.spec();
    spec.work = Place::Tree(Tree {
        directory: &ground.lower,
        access: Access::Ro,
    });
    let layers = Layers {
        over: Some(&over),
        writes: Layer::None,
    };
    let state = ground.yard.house.state();
    let native = ground.yard.native();
    let (prepared, _) = native.open_layered(&spec, layers, &state).unwrap();
    let line = "sh lib.sh; cat key 2> /dev/null || echo denied; cat plain
        (echo x > new) 2> /dev/null || echo read-only";
    let said = ground.see(prepared, &[], line).unwrap();
    assert_eq!(
        said.stdout, "approved\ndenied\necho first\nread-only\n",
        "{said:?}"
    );
}
