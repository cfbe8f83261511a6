//! Caches: nobody gets a handle that he may write on what another reads.

// Helpers of tests are tests, which the lint cannot know.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::Duration;

use glovebox_model::{Access, Code, SpaceId};
use glovebox_workspace::{
    Cache, CacheKey, CacheMode, CacheName, CacheOwner, CachePrune, Dir, FileTime, Layout, RelPath,
    SeedLimits, UsageLimits,
};

const PLENTY: UsageLimits = UsageLimits {
    entries: 1_000_000,
    time: Duration::from_secs(60),
};

struct Ground {
    _tmp: tempfile::TempDir,
    base: PathBuf,
    layout: Layout,
}

impl Ground {
    fn new() -> Self {
        let tmp = tempfile::tempdir().unwrap();
        let base = tmp.path().canonicalize().unwrap();
        std::fs::create_dir(base.join("source")).unwrap();
        std::fs::create_dir(base.join("state")).unwrap();
        let state = Dir::open_trusted(&base.join("state")).unwrap();
        Self {
            _tmp: tmp,
            base,
            layout: Layout::open(state).unwrap(),
        }
    }

    fn of_user(&self, user: &str, name: &str) -> Cache {
        self.layout.cache(&of_user(user, name)).unwrap()
    }

    fn fill(&self, name: &str, contents: &str) {
        std::fs::write(self.base.join("source/wheel"), contents).unwrap();
        let source = Dir::open_trusted(&self.base.join("source")).unwrap();
        let limits = SeedLimits::default();
        self.layout
            .fill_cache(&shared(name), &source, limits, &|| true)
            .unwrap();
    }

    /// Where the caches of this owner lie on the host.
    fn scope(&self, user: &str) -> PathBuf {
        let cache = self.of_user(user, "where");
        let id = cache.dir().id().unwrap();
        let scopes = std::fs::read_dir(self.base.join("state/caches")).unwrap();
        let mut scopes = scopes.map(|it| it.unwrap().path());
        let found = scopes.find(|scope| {
            Dir::open_trusted(&scope.join("where")).is_ok_and(|dir| dir.id().unwrap() == id)
        });
        found.unwrap()
    }
}

fn local() -> SpaceId {
    SpaceId::local()
}

fn name(text: &str) -> CacheName {
    text.parse().unwrap()
}

fn of_user(user: &str, cache: &str) -> CacheKey {
    CacheKey::new(&local(), Some(user), name(cache), CacheMode::PerUser).unwrap()
}

fn shared(cache: &str) -> CacheKey {
    CacheKey::new(&local(), None, name(cache), CacheMode::Shared).unwrap()
}

fn write(cache: &Cache, path: &str, contents: &str) {
    let path = RelPath::new(path).unwrap();
    cache
        .dir()
        .write(&path, contents.as_bytes(), 0o644)
        .unwrap();
}

fn read(cache: &Cache, path: &str) -> Option<String> {
    let bytes = cache.dir().read(&RelPath::new(path).unwrap(), 1 << 20);
    bytes.ok().map(|bytes| String::from_utf8(bytes).unwrap())
}

fn later(secs: i64) -> FileTime {
    let now = FileTime::now();
    FileTime {
        sec: now.sec + secs,
        ..now
    }
}

#[test]
fn what_one_user_writes_no_other_reads() {
    let ground = Ground::new();
    // Names that a slug, a path, a case-blind or a normalising key would throw together.
    let users = [
        "alice",
        "Alice",
        "alice ",
        "alice/",
        "a/lice",
        "../alice",
        "al\0ice",
        "alice.",
        "éve",
        "e\u{301}ve",
        "shared",
        "local",
        "user-",
        "0",
        "00",
        "😀",
    ];
    let caches: Vec<Cache> = users.iter().map(|it| ground.of_user(it, "pip")).collect();
    for (user, cache) in users.iter().zip(&caches) {
        assert_eq!(cache.access(), Access::Rw);
        write(cache, "wheel", user);
    }
    for (user, cache) in users.iter().zip(&caches) {
        assert_eq!(read(cache, "wheel").as_deref(), Some(*user));
        let again = ground.of_user(user, "pip");
        assert_eq!(again.dir().id().unwrap(), cache.dir().id().unwrap());
    }
    // Nor is it the same in another space, even if both lie in one directory.
    let key = CacheKey::new(
        &"other".parse().unwrap(),
        Some("alice"),
        name("pip"),
        CacheMode::PerUser,
    );
    let other = ground.layout.cache(&key.unwrap()).unwrap();
    assert_eq!(read(&other, "wheel"), None);
    assert_eq!(read(&ground.of_user("alice", "npm"), "wheel"), None);
    ground.fill("pip", "the operator's");
    let all = ground.layout.cache(&shared("pip")).unwrap();
    let ids: Vec<_> = caches.iter().map(|it| it.dir().id().unwrap()).collect();
    assert!(!ids.contains(&all.dir().id().unwrap()));
}

#[test]
fn what_all_read_is_writable_to_none() {
    let ground = Ground::new();
    let error = ground.layout.cache(&shared("pip")).unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    assert!(!error.hints.is_empty());
    ground.fill("pip", "good");
    for user in [None, Some("alice"), Some("root"), Some("")] {
        let key = CacheKey::new(&local(), user, name("pip"), CacheMode::Shared).unwrap();
        assert_eq!(key.access(), Access::Ro);
        let cache = ground.layout.cache(&key).unwrap();
        assert_eq!(cache.access(), Access::Ro);
        assert_eq!(read(&cache, "wheel").as_deref(), Some("good"));
    }
    // There is no cache of nobody in particular, which all of them could write.
    for user in [None, Some("")] {
        let key = CacheKey::new(&local(), user, name("pip"), CacheMode::PerUser);
        assert_eq!(key.unwrap_err().code, Code::InvalidArgument);
    }
    // Nor is a user's cache filled by anybody but the user.
    let source = Dir::open_trusted(&ground.base.join("source")).unwrap();
    let limits = SeedLimits::default();
    let error = ground
        .layout
        .fill_cache(&of_user("alice", "pip"), &source, limits, &|| true);
    assert_eq!(error.unwrap_err().code, Code::InvalidArgument);
}

#[test]
fn a_name_is_one_plain_name() {
    for good in ["pip", "npm-9", "a", "0.x_y", &"x".repeat(64)] {
        assert!(good.parse::<CacheName>().is_ok(), "{good}");
    }
    let long = "x".repeat(65);
    let bad = [
        "",
        ".",
        "..",
        "a/b",
        "../x",
        "/x",
        "a..b",
        ".hidden",
        "-x",
        "Pip",
        "p ip",
        "a\0b",
        "a\nb",
        "x.",
        "é",
        "a\\b",
        ".used-pip",
        long.as_str(),
    ];
    for bad in bad {
        let error = bad.parse::<CacheName>().unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{bad}");
    }
}

#[test]
fn a_link_in_place_of_a_cache_is_refused() {
    let ground = Ground::new();
    write(&ground.of_user("bob", "pip"), "wheel", "bob's");
    let (alice, bob) = (ground.scope("alice"), ground.scope("bob"));
    symlink(bob.join("pip"), alice.join("pip")).unwrap();
    symlink("where", alice.join("npm")).unwrap();
    symlink(
        format!("../{}/pip", bob.file_name().unwrap().display()),
        alice.join("up"),
    )
    .unwrap();
    for cache in ["pip", "npm", "up"] {
        let error = ground.layout.cache(&of_user("alice", cache)).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{cache}");
    }
    // A scope that is a link to another's.
    std::fs::remove_dir_all(&alice).unwrap();
    symlink(bob.file_name().unwrap(), &alice).unwrap();
    let error = ground.layout.cache(&of_user("alice", "pip")).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
    // What a program puts into its own cache leads it nowhere either.
    let carol = ground.of_user("carol", "pip");
    let inside = ground.scope("carol").join("pip");
    symlink(bob.join("pip/wheel"), inside.join("wheel")).unwrap();
    assert_eq!(read(&carol, "wheel"), None);
}

#[test]
fn a_shared_cache_is_replaced_as_a_whole() {
    let ground = Ground::new();
    let secret = ground.base.join("source/private");
    std::fs::write(&secret, "x").unwrap();
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::write(ground.base.join("source/only-once"), "x").unwrap();
    ground.fill("pip", "old");
    let old = ground.layout.cache(&shared("pip")).unwrap();
    std::fs::remove_file(ground.base.join("source/only-once")).unwrap();
    ground.fill("pip", "new");
    let new = ground.layout.cache(&shared("pip")).unwrap();
    assert_eq!(read(&new, "wheel").as_deref(), Some("new"));
    assert_eq!(read(&new, "only-once"), None);
    assert_eq!(read(&old, "wheel").as_deref(), Some("old"), "still mounted");
    let path = RelPath::new("private").unwrap();
    assert_eq!(
        new.dir().lstat(&path).unwrap().mode,
        0o644,
        "everybody reads"
    );
    // A filling that fails changes nothing and leaves nothing.
    let source = Dir::open_trusted(&ground.base.join("source")).unwrap();
    let none = SeedLimits {
        bytes: 1,
        ..SeedLimits::default()
    };
    assert!(
        ground
            .layout
            .fill_cache(&shared("pip"), &source, none, &|| true)
            .is_err()
    );
    // Nor does one that is given up in the middle, be it of a file.
    std::fs::write(ground.base.join("source/large"), vec![1; 1 << 20]).unwrap();
    let entries = || {
        let scopes = std::fs::read_dir(ground.base.join("state/caches")).unwrap();
        let within = |scope: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_dir(scope.unwrap().path()).unwrap().count()
        };
        scopes.map(within).sum::<usize>()
    };
    let before = entries();
    for most in 0..12 {
        let asked = std::cell::Cell::new(0);
        let is_wanted = || asked.replace(asked.get() + 1) < most;
        let limits = SeedLimits::default();
        let given_up = ground
            .layout
            .fill_cache(&shared("pip"), &source, limits, &is_wanted);
        assert_eq!(given_up.unwrap_err().code, Code::Canceled, "{most}");
        assert_eq!(entries(), before, "{most}");
    }
    let again = ground.layout.cache(&shared("pip")).unwrap();
    assert_eq!(again.dir().id().unwrap(), new.dir().id().unwrap());

    let prune = |now| {
        let all = CachePrune {
            unused_for: Some(Duration::ZERO),
            bytes: Some(0),
        };
        ground.layout.prune_caches(all, PLENTY, now).unwrap()
    };
    assert_eq!(prune(later(3600)).removed, [], "shared ones stay");
    assert_eq!(read(&old, "wheel").as_deref(), Some("old"), "for a day");
    prune(later(25 * 3600));
    assert_eq!(read(&old, "wheel"), None);
    assert_eq!(read(&again, "wheel").as_deref(), Some("new"));
    drop((old, new, again));
    assert!(ground.layout.remove_cache(&shared("pip")).unwrap());
    assert_eq!(
        ground.layout.cache(&shared("pip")).unwrap_err().code,
        Code::NotFound
    );
}

#[test]
fn caches_are_measured_and_the_longest_unused_go_first() {
    let ground = Ground::new();
    for (index, user) in ["old", "middle", "young"].iter().enumerate() {
        let cache = ground.of_user(user, "pip");
        write(&cache, "wheel", &"x".repeat(100_000));
        drop(cache);
        let mark = std::fs::File::open(ground.scope(user).join(".used-pip")).unwrap();
        let ago = Duration::from_secs(1000 * (3 - index as u64));
        mark.set_modified(std::time::SystemTime::now() - ago)
            .unwrap();
        std::fs::remove_dir(ground.scope(user).join("where")).unwrap();
    }
    let list = ground.layout.caches(PLENTY).unwrap();
    assert_eq!(list.len(), 3);
    for cache in &list {
        assert!(
            cache.usage.complete && cache.usage.bytes >= 100_000,
            "{cache:?}"
        );
        assert!(matches!(cache.owner, Some(CacheOwner::User(_))));
    }
    let prune = |unused_for, bytes| {
        let which = CachePrune { unused_for, bytes };
        let pruned = ground.layout.prune_caches(which, PLENTY, later(0)).unwrap();
        let owners = |list: &[glovebox_workspace::CacheUse]| -> Vec<String> {
            let owner = |it: &glovebox_workspace::CacheUse| match &it.owner {
                Some(CacheOwner::User(user)) => user.clone(),
                other => panic!("{other:?}"),
            };
            list.iter().map(owner).collect()
        };
        (owners(&pruned.removed), owners(&pruned.in_use))
    };
    let none: [&str; 0] = [];
    assert_eq!(prune(None, None).0, none);
    assert_eq!(prune(None, Some(1 << 30)).0, none);
    assert_eq!(prune(Some(Duration::from_secs(2500)), None).0, ["old"]);
    let held = {
        // Held, and the time of its last use put back again.
        let held = ground.of_user("middle", "pip");
        let mark = std::fs::File::open(ground.scope("middle").join(".used-pip")).unwrap();
        let ago = std::time::SystemTime::now() - Duration::from_secs(2000);
        mark.set_modified(ago).unwrap();
        std::fs::remove_dir(ground.scope("middle").join("where")).unwrap();
        held
    };
    let (removed, in_use) = prune(Some(Duration::from_secs(1500)), None);
    assert_eq!((removed.len(), in_use), (0, vec!["middle".to_owned()]));
    assert!(
        !ground
            .layout
            .remove_cache(&of_user("middle", "pip"))
            .unwrap()
    );
    assert_eq!(read(&held, "wheel").unwrap().len(), 100_000);
    drop(held);
    let (removed, _) = prune(None, Some(1));
    assert_eq!(removed, ["middle", "young"]);
    assert_eq!(ground.layout.caches(PLENTY).unwrap(), []);
    assert_eq!(read(&ground.of_user("young", "pip"), "wheel"), None);
}

#[test]
fn a_program_cannot_make_its_cache_look_young_or_another_look_old() {
    let ground = Ground::new();
    write(&ground.of_user("alice", "pip"), "wheel", "x");
    let dir = ground.scope("alice").join("pip");
    let future = std::time::SystemTime::now() + Duration::from_secs(1 << 30);
    std::fs::File::open(&dir)
        .unwrap()
        .set_modified(future)
        .unwrap();
    let which = CachePrune {
        unused_for: Some(Duration::from_secs(60)),
        bytes: None,
    };
    let pruned = ground
        .layout
        .prune_caches(which, PLENTY, later(120))
        .unwrap();
    assert!(pruned.removed.iter().any(|it| it.name == name("pip")));
}

/// Whoever opens while another removes gets a cache that stays.
#[test]
fn a_cache_that_was_handed_out_is_not_removed_under_its_user() {
    let ground = Ground::new();
    let rounds = 40;
    std::thread::scope(|scope| {
        let remover = scope.spawn(|| {
            let mut removed = 0;
            while removed < rounds {
                let done = ground
                    .layout
                    .remove_cache(&of_user("alice", "pip"))
                    .unwrap();
                removed += u32::from(done);
            }
        });
        while !remover.is_finished() {
            let cache = ground.of_user("alice", "pip");
            write(&cache, "wheel", "mine");
            assert_eq!(read(&cache, "wheel").as_deref(), Some("mine"));
            drop(cache);
            // Where both share a processor, the other has its turn while nobody holds it.
            std::thread::yield_now();
        }
        remover.join().unwrap();
    });
}
