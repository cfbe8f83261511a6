//! Which control groups this host lets us make.

use std::path::{Path, PathBuf};

/// A version 1 hierarchy, and the directory in it where this process stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    controllers: Vec<String>,
    place: PathBuf,
}

impl Hierarchy {
    pub(super) fn has(&self, controller: &str) -> bool {
        self.controllers.iter().any(|it| it == controller)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Controllers {
    V1(Vec<Hierarchy>),
    /// The directory below which a group may be made, and what it may limit.
    V2 {
        place: PathBuf,
        limits: Vec<String>,
    },
}

/// A host whose control groups we can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    pub controllers: Controllers,
}

const WANTED: [&str; 4] = ["memory", "pids", "cpu", "cpuacct"];

impl Host {
    /// Looks; `Err` says in words why there is nothing to use.
    pub fn detect() -> Result<Self, String> {
        let read =
            |path: &str| read_at_once(path).map_err(|error| format!("cannot read {path}: {error}"));
        let own = read("/proc/self/cgroup")?;
        let mounts = read("/proc/self/mountinfo")?;
        Self::find(&own, &mounts)
    }

    fn find(own: &str, mounts: &str) -> Result<Self, String> {
        let hierarchies = v1_hierarchies(own, mounts);
        if hierarchies.iter().any(|hierarchy| hierarchy.has("memory")) {
            if let Some(closed) = hierarchies.iter().find(|it| !writable(&it.place)) {
                return Err(format!("{} is not writable", closed.place.display()));
            }
            return Ok(Self {
                controllers: Controllers::V1(hierarchies),
            });
        }
        v2_place(own, mounts).map(|(place, limits)| Self {
            controllers: Controllers::V2 { place, limits },
        })
    }

    pub fn version(&self) -> u8 {
        match self.controllers {
            Controllers::V1(_) => 1,
            Controllers::V2 { .. } => 2,
        }
    }

    pub fn limits(&self, controller: &str) -> bool {
        match &self.controllers {
            Controllers::V1(all) => all.iter().any(|hierarchy| hierarchy.has(controller)),
            Controllers::V2 { limits, .. } => limits.iter().any(|it| it == controller),
        }
    }

    pub(super) fn places(&self, name: &str) -> Vec<PathBuf> {
        match &self.controllers {
            Controllers::V1(all) => all.iter().map(|it| it.place.join(name)).collect(),
            Controllers::V2 { place, .. } => vec![place.join(name)],
        }
    }

    /// Every directory in which groups are made.
    pub fn parents(&self) -> Vec<PathBuf> {
        match &self.controllers {
            Controllers::V1(all) => all.iter().map(|it| it.place.clone()).collect(),
            Controllers::V2 { place, .. } => vec![place.clone()],
        }
    }
}

/// Files of /proc have no size to go by: with room from the start one call reads all.
fn read_at_once(path: &str) -> std::io::Result<String> {
    use std::io::Read;
    let mut text = String::with_capacity(64 << 10);
    std::fs::File::open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

fn writable(path: &Path) -> bool {
    rustix::fs::access(
        path,
        rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK,
    )
    .is_ok()
}

struct Mounted<'text> {
    root: &'text str,
    at: &'text str,
    kind: &'text str,
    options: &'text str,
}

/// Lines of proc_pid_mountinfo(5) that are control group mounts.
fn cgroup_mounts(mounts: &str) -> impl Iterator<Item = Mounted<'_>> {
    mounts.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let kind = after.next().filter(|kind| kind.starts_with("cgroup"))?;
        let options = after.nth(1)?;
        let mut before = before.split(' ').skip(3);
        Some(Mounted {
            root: before.next()?,
            at: before.next()?,
            kind,
            options,
        })
    })
}

/// Our own directory in a hierarchy: the mount may itself show only a part of it.
fn own_directory(mounted: &Mounted<'_>, own: &str) -> PathBuf {
    let below = own
        .strip_prefix(mounted.root.trim_end_matches('/'))
        .unwrap_or(own);
    Path::new(mounted.at).join(below.trim_start_matches('/'))
}

fn v1_hierarchies(own: &str, mounts: &str) -> Vec<Hierarchy> {
    let mut found = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(names), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let controllers: Vec<String> = names
            .split(',')
            .filter(|name| WANTED.contains(name))
            .map(str::to_owned)
            .collect();
        if controllers.is_empty() {
            continue;
        }
        let mounted = cgroup_mounts(mounts).find(|mounted| {
            mounted.kind == "cgroup"
                && mounted
                    .options
                    .split(',')
                    .any(|option| option == controllers[0])
        });
        if let Some(mounted) = mounted {
            found.push(Hierarchy {
                place: own_directory(&mounted, path),
                controllers,
            });
        }
    }
    found
}

/// The nearest ancestor of our own group that hands controllers down and lets us make children.
fn v2_place(own: &str, mounts: &str) -> Result<(PathBuf, Vec<String>), String> {
    let mounted = cgroup_mounts(mounts)
        .find(|mounted| mounted.kind == "cgroup2")
        .ok_or("no control groups are mounted")?;
    let path = own
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
        .ok_or("this process is in no version 2 group")?;
    let start = own_directory(&mounted, path);
    let top = Path::new(mounted.at);
    for place in start.ancestors().take_while(|place| place.starts_with(top)) {
        let given =
            std::fs::read_to_string(place.join("cgroup.subtree_control")).unwrap_or_default();
        let limits: Vec<String> = given.split_whitespace().map(str::to_owned).collect();
        let enough = ["memory", "pids"]
            .iter()
            .all(|name| limits.iter().any(|it| it == name));
        if enough && writable(place) && writable_file(&place.join("cgroup.procs")) {
            return Ok((place.to_owned(), limits));
        }
    }
    Err(format!(
        "no group from {} upward hands down memory and pids and may be written",
        start.display()
    ))
}

fn writable_file(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1_MOUNTS: &str = "\
31 30 0:28 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
32 30 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
33 30 0:30 /outer /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
34 30 0:31 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    #[test]
    fn version_1_places_follow_the_mounts() {
        let own = "4:memory:/a/b\n3:cpu,cpuacct:/\n2:pids:/outer/c\n1:name=systemd:/\n0::/\n";
        let found = v1_hierarchies(own, V1_MOUNTS);
        let places: Vec<_> = found.iter().map(|it| it.place.to_str().unwrap()).collect();
        assert_eq!(
            places,
            [
                "/sys/fs/cgroup/memory/a/b",
                "/sys/fs/cgroup/cpu,cpuacct/",
                "/sys/fs/cgroup/pids/c"
            ]
        );
        assert!(found[1].has("cpu") && found[1].has("cpuacct"));
    }

    #[test]
    fn version_2_takes_the_nearest_ancestor_that_hands_down() {
        let top = tempfile::tempdir().unwrap();
        let at = top.path().to_str().unwrap();
        let deep = top.path().join("user/app");
        std::fs::create_dir_all(&deep).unwrap();
        for (place, given) in [
            ("", "cpu memory pids"),
            ("user", "memory pids"),
            ("user/app", ""),
        ] {
            let place = top.path().join(place);
            std::fs::write(place.join("cgroup.subtree_control"), given).unwrap();
            std::fs::write(place.join("cgroup.procs"), "").unwrap();
        }
        let mounts = format!("34 30 0:31 / {at} rw,relatime - cgroup2 cgroup2 rw\n");
        let (place, limits) = v2_place("0::/user/app\n", &mounts).unwrap();
        assert_eq!(place, top.path().join("user"));
        assert_eq!(limits, ["memory", "pids"]);
    }

    #[test]
    fn a_host_without_groups_is_told_in_words() {
        assert!(
            Host::find("0::/\n", "")
                .unwrap_err()
                .contains("no control groups")
        );
    }
}
