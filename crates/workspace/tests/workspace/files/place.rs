//! A workspace beside a directory that nobody inside may reach.

use std::path::{Path, PathBuf};

use glovebox_workspace::{Dir, RelPath};

pub(crate) const CANARY: &[u8] = b"host canary";

pub(crate) struct Place {
    _tmp: tempfile::TempDir,
    pub(crate) inside: PathBuf,
    pub(crate) outside: PathBuf,
    pub(crate) dir: Dir,
}

pub(crate) fn place() -> Place {
    in_directory(&std::env::temp_dir())
}

/// For a hundred thousand files or renames: a disk's journal would take most of the time.
pub(crate) fn place_in_memory() -> Place {
    let memory = Path::new("/dev/shm");
    match tempfile::tempdir_in(memory) {
        Ok(_) => in_directory(memory),
        Err(_) => place(),
    }
}

fn in_directory(parent: &Path) -> Place {
    let tmp = tempfile::tempdir_in(parent).unwrap();
    let base = tmp.path().canonicalize().unwrap();
    let (inside, outside) = (base.join("inside"), base.join("outside"));
    std::fs::create_dir(&inside).unwrap();
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("canary"), CANARY).unwrap();
    let dir = Dir::open_trusted(&inside).unwrap();
    Place {
        _tmp: tmp,
        inside,
        outside,
        dir,
    }
}

impl Place {
    pub(crate) fn link(&self, target: impl AsRef<Path>, name: &str) {
        std::os::unix::fs::symlink(target, self.inside.join(name)).unwrap();
    }

    pub(crate) fn file(&self, name: &str, contents: &[u8]) {
        let path = self.inside.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
    }

    pub(crate) fn assert_outside_untouched(&self) {
        let names: Vec<_> = std::fs::read_dir(&self.outside)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["canary"], "something was made or removed outside");
        assert_eq!(std::fs::read(self.outside.join("canary")).unwrap(), CANARY);
    }
}

pub(crate) fn rel(path: &str) -> RelPath {
    RelPath::new(path).unwrap()
}
