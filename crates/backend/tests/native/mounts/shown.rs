//! What a sandbox sees and can do there.

use std::path::{Path, PathBuf};

use glovebox_backend::{HostMount, Place, Spec, Tree};
use glovebox_model::{Access, Result};
use glovebox_workspace::Dir;

use crate::house::{Told, Yard, profile, run, shell};

struct Scene {
    yard: Yard,
}

impl Scene {
    fn new() -> Self {
        let yard = Yard::new();
        let data = yard.house.path().join("data");
        std::fs::create_dir(&data).unwrap();
        std::fs::write(data.join("text"), "granted\n").unwrap();
        Self { yard }
    }

    fn data(&self) -> PathBuf {
        self.yard.house.path().join("data")
    }

    fn open(&self, access: Access) -> Result<HostMount> {
        let state = self.yard.house.state();
        HostMount::open(&self.data(), Path::new("/mnt/data"), access, &state)
    }

    fn run(&self, mount: &HostMount, line: &str) -> Told {
        let artifacts = Dir::open_trusted(&self.yard.house.path().join("artifacts")).unwrap();
        let profile = profile();
        let spec = Spec {
            artifacts: Place::Tree(Tree {
                directory: &artifacts,
                access: Access::Rw,
            }),
            mounts: vec![mount],
            ..Spec::new(&profile)
        };
        let prepared = self.yard.native().open(&spec, &self.yard.house.state());
        run(prepared.unwrap(), &profile, &shell(line), None).unwrap()
    }
}

pub(crate) fn what_is_granted_for_reading_is_only_read() {
    let scene = Scene::new();
    let mount = scene.open(Access::Ro).unwrap();
    let told = scene.run(
        &mount,
        "cat /mnt/data/text; echo x 2>&1 >/mnt/data/new; echo y 2>&1 >/mnt/data/text; rm /mnt/data/text; \
         grep -w /mnt/data /proc/self/mounts",
    );
    let mut lines = told.stdout.lines();
    assert_eq!(lines.next(), Some("granted"), "{told:?}");
    let options = lines.next_back().unwrap_or_default();
    for option in ["ro", "nosuid", "nodev"] {
        let mut all = options.split([' ', ',']);
        assert!(all.any(|it| it == option), "{option}: {told:?}");
    }
    assert!(!scene.data().join("new").exists());
    assert_eq!(
        std::fs::read_to_string(scene.data().join("text")).unwrap(),
        "granted\n"
    );
}

pub(crate) fn what_is_granted_for_writing_is_written() {
    let scene = Scene::new();
    let mount = scene.open(Access::Rw).unwrap();
    let told = scene.run(
        &mount,
        "echo written >/mnt/data/new && cp /bin/sh /mnt/data/sh; chmod 4755 /mnt/data/sh; echo over; \
         grep -w /mnt/data /proc/self/mounts",
    );
    assert!(told.stdout.starts_with("over\n"), "{told:?}");
    for option in ["nosuid", "nodev"] {
        let mut all = told.stdout.split([' ', ',']);
        assert!(all.any(|it| it == option), "{option}: {told:?}");
    }
    let written = std::fs::read_to_string(scene.data().join("new")).unwrap();
    assert_eq!(written, "written\n");
    // On the host such a program would be its owner's for everybody.
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(scene.data().join("sh")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o6000, 0);
}

pub(crate) fn links_in_it_lead_nowhere_outside() {
    let scene = Scene::new();
    let secret = scene.yard.house.path().join("secret");
    std::fs::write(&secret, "canary").unwrap();
    std::os::unix::fs::symlink(&secret, scene.data().join("out")).unwrap();
    std::os::unix::fs::symlink("../secret", scene.data().join("up")).unwrap();
    let mount = scene.open(Access::Ro).unwrap();
    let told = scene.run(
        &mount,
        "cat /mnt/data/out /mnt/data/up /mnt/data/../secret; ls /mnt",
    );
    assert_eq!(told.stdout, "data\n", "{told:?}");
}

/// The directory is moved away and another, or a link to the host's own, put in its place.
pub(crate) fn what_is_held_stays_what_was_checked() {
    let scene = Scene::new();
    let mount = scene.open(Access::Rw).unwrap();
    let moved = scene.yard.house.path().join("moved");
    std::fs::rename(scene.data(), &moved).unwrap();
    std::os::unix::fs::symlink("/etc", scene.data()).unwrap();
    let told = scene.run(&mount, "cat /mnt/data/text; ls /mnt/data");
    assert_eq!(told.stdout, "granted\ntext\n", "{told:?}");
    // Whoever asks again now is refused.
    assert!(scene.open(Access::Rw).is_err());
}
