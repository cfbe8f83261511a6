//! One kind of change after the other: told as what it is, and kept as it was seen.

use glovebox_workspace::change::{EntryChange, Facts, text, unified};
use glovebox_workspace::{FsErrorKind, Kind};

use crate::change::ground::{Ground, applied, list_of, told};
use glovebox_workspace::change::ReadLimits;

fn check(before: &str, line: &str, expected: &[(&str, EntryChange)]) {
    let ground = Ground::new();
    ground.sh(before);
    let untouched = ground.list();
    let held = ground.hold();
    let seen = ground.changed_by(&held, line);
    assert_eq!(ground.list(), untouched, "{line}");
    assert_eq!(told(&ground.changes(&held)), list_of(expected), "{line}");
    assert_eq!(ground.list(), untouched, "{line}");
    applied(&ground.keep(&held));
    assert_eq!(ground.list(), seen, "{line}");
    // Nothing is left to change.
    assert_eq!(told(&ground.changes(&held)), [], "{line}");
    let left = ground.shelf.list(10).unwrap().entries.len();
    assert_eq!(left, 1, "{line}");
    assert!(!ground.path("held/one/stage").exists(), "{line}");
}

const TREE: &str = "mkdir -p d/e/f; echo a > a; echo b > b; echo x > d/x; echo y > d/e/y
    echo z > d/e/f/z; ln -s a l; ln -s nowhere dangling; mkdir empty";

#[test]
fn files() {
    check(TREE, "echo n > n", &[("n", EntryChange::Created)]);
    check(TREE, "echo n >> a", &[("a", EntryChange::Modified)]);
    check(TREE, ": > a", &[("a", EntryChange::Modified)]);
    check(TREE, "rm a", &[("a", EntryChange::Removed)]);
    check(TREE, "chmod 751 a", &[("a", EntryChange::Touched)]);
    check(
        TREE,
        "touch -d 2001-01-01 a",
        &[("a", EntryChange::Touched)],
    );
    check(TREE, "rm a; echo n > a", &[("a", EntryChange::Modified)]);
    check(
        TREE,
        "rm a; mkdir a; echo n > a/n",
        &[("a", EntryChange::Replaced), ("a/n", EntryChange::Created)],
    );
    check(
        TREE,
        "mv a b",
        &[("a", EntryChange::Removed), ("b", EntryChange::Modified)],
    );
    check(
        TREE,
        "mv a c; mv b a; mv c b",
        &[("a", EntryChange::Modified), ("b", EntryChange::Modified)],
    );
    let names = [("\\x01\\xff*\\n", EntryChange::Created)];
    let ground = Ground::new();
    let held = ground.hold();
    ground.layered(&held, "echo odd > $'\\x01\\xff*\\\\n'");
    assert_eq!(told(&ground.changes(&held)).len(), names.len());
    applied(&ground.keep(&held));
    assert_eq!(ground.sh("ls | wc -l"), "1\n");
}

#[test]
fn files_that_were_only_opened() {
    let ground = Ground::new();
    ground.sh(TREE);
    let held = ground.hold();
    ground.layered(&held, "exec 3<> a; exec 4>> d/x; chmod 644 b; touch -r b b");
    let changes = ground.changes(&held);
    assert_eq!(told(&changes), []);
    assert_eq!(changes.unchanged, 3);
}

#[test]
fn directories() {
    check(
        TREE,
        "mkdir -p n/k; echo x > n/k/x",
        &[
            ("n", EntryChange::Created),
            ("n/k", EntryChange::Created),
            ("n/k/x", EntryChange::Created),
        ],
    );
    // What lies in it is told one by one.
    check(
        TREE,
        "rm -r d",
        &[
            ("d", EntryChange::Removed),
            ("d/e", EntryChange::Removed),
            ("d/e/f", EntryChange::Removed),
            ("d/e/f/z", EntryChange::Removed),
            ("d/e/y", EntryChange::Removed),
            ("d/x", EntryChange::Removed),
        ],
    );
    check(
        TREE,
        "rm -r d; echo file > d",
        &[
            ("d", EntryChange::Replaced),
            ("d/e", EntryChange::Removed),
            ("d/e/f", EntryChange::Removed),
            ("d/e/f/z", EntryChange::Removed),
            ("d/e/y", EntryChange::Removed),
            ("d/x", EntryChange::Removed),
        ],
    );
    check(TREE, "rmdir empty", &[("empty", EntryChange::Removed)]);
    check(TREE, "chmod 700 d", &[("d", EntryChange::Touched)]);
    // Made anew, it hides what was there; what is the same again did not change.
    check(
        TREE,
        "cp -a d copy; rm -r d; mkdir d; cp -a copy/x d/x; echo new > d/new; rm -r copy",
        &[
            ("d/e", EntryChange::Removed),
            ("d/e/f", EntryChange::Removed),
            ("d/e/f/z", EntryChange::Removed),
            ("d/e/y", EntryChange::Removed),
            ("d/new", EntryChange::Created),
        ],
    );
    check(
        TREE,
        "rm -r d/e; mkdir -p d/e/f; echo w > d/e/f/w",
        &[
            ("d/e/f/w", EntryChange::Created),
            ("d/e/f/z", EntryChange::Removed),
            ("d/e/y", EntryChange::Removed),
        ],
    );
    check(
        TREE,
        "mv d moved",
        &[
            ("d", EntryChange::Removed),
            ("d/e", EntryChange::Removed),
            ("d/e/f", EntryChange::Removed),
            ("d/e/f/z", EntryChange::Removed),
            ("d/e/y", EntryChange::Removed),
            ("d/x", EntryChange::Removed),
            ("moved", EntryChange::Created),
            ("moved/e", EntryChange::Created),
            ("moved/e/f", EntryChange::Created),
            ("moved/e/f/z", EntryChange::Created),
            ("moved/e/y", EntryChange::Created),
            ("moved/x", EntryChange::Created),
        ],
    );
    check(
        TREE,
        "mkdir n; echo x > n/x; chmod 500 n; chmod 555 d/e",
        &[
            ("d/e", EntryChange::Touched),
            ("n", EntryChange::Created),
            ("n/x", EntryChange::Created),
        ],
    );
}

#[test]
fn links() {
    check(TREE, "ln -sfn b l", &[("l", EntryChange::Modified)]);
    check(TREE, "rm l; echo file > l", &[("l", EntryChange::Replaced)]);
    check(TREE, "rm a; ln -s b a", &[("a", EntryChange::Replaced)]);
    check(
        TREE,
        "rm dangling; ln -s d/e/f new",
        &[
            ("dangling", EntryChange::Removed),
            ("new", EntryChange::Created),
        ],
    );
    // Through a link the file changes, not the link.
    check(TREE, "echo n >> l", &[("a", EntryChange::Modified)]);
}

#[test]
fn several_names_of_one_file() {
    let ground = Ground::new();
    ground.sh(TREE);
    ground.sh("ln b twin");
    let held = ground.hold();
    let line = "ln a again; echo m > m; ln m d/m2; mkdir n; ln m n/m3";
    let seen = ground.changed_by(&held, line);
    assert_eq!(
        told(&ground.changes(&held)),
        list_of(&[
            ("a", EntryChange::Touched),
            ("again", EntryChange::Created),
            ("d/m2", EntryChange::Created),
            ("m", EntryChange::Created),
            ("n", EntryChange::Created),
            ("n/m3", EntryChange::Created),
        ])
    );
    applied(&ground.keep(&held));
    assert_eq!(ground.list(), seen);
    let links = "stat -c '%h' a again m d/m2 n/m3 b twin | tr '\\n' ' '";
    assert_eq!(ground.sh(links), "2 2 3 3 3 2 2 ");
    assert_eq!(
        ground.sh("[ a -ef again ] && [ m -ef n/m3 ] && [ d/m2 -ef m ] && echo same"),
        "same\n"
    );
}

/// Both names of one file below are written: the first exchange touches the other name's file.
#[test]
fn both_names_of_a_file_below() {
    let ground = Ground::new();
    ground.sh("echo a > a; ln a b; ln a c");
    let held = ground.hold();
    let seen = ground.changed_by(&held, "echo one > a; echo two > b; rm c");
    applied(&ground.keep(&held));
    assert_eq!(ground.list(), seen);
}

#[test]
fn attributes() {
    let set = |path: &str, value: &str| {
        format!("python3 -c \"import os; os.setxattr('{path}', 'user.{value}', b'{value}')\"")
    };
    let before = format!("{TREE}\n{}\n{}", set("a", "old"), set("d", "old"));
    check(&before, &set("a", "new"), &[("a", EntryChange::Touched)]);
    check(&before, &set("d", "new"), &[("d", EntryChange::Touched)]);
    check(
        &before,
        "python3 -c \"import os; os.removexattr('a', 'user.old'); os.removexattr('d', 'user.old')\"",
        &[("a", EntryChange::Touched), ("d", EntryChange::Touched)],
    );
    check(
        &before,
        &format!(
            "mkdir n; {}; echo f > n/f; {}",
            set("n", "v"),
            set("n/f", "w")
        ),
        &[("n", EntryChange::Created), ("n/f", EntryChange::Created)],
    );
}

#[test]
fn facts_and_hunks() {
    let ground = Ground::new();
    ground.sh("printf 'one\\ntwo\\n' > a; printf '\\0' > binary");
    let held = ground.hold();
    ground.layered(
        &held,
        "printf 'one\\n2\\n' > a; printf '\\1\\0' > binary; echo new > n",
    );
    let changes = ground.changes(&held);
    let [a, binary, n] = &changes.entries[..] else {
        panic!("{changes:?}");
    };
    let facts = |text: &str| Facts {
        kind: Kind::File,
        size: text.len() as u64,
        mode: 0o644,
        digest: Some(blake3::hash(text.as_bytes()).to_hex().to_string()),
        attributes: None,
        target: None,
    };
    assert_eq!(a.before, Some(facts("one\ntwo\n")));
    assert_eq!(a.after, Some(facts("one\n2\n")));
    let hunks = |change, most| text(&ground.lower, held.upper(), change, most).unwrap();
    let expected = "@@ -1,2 +1,2 @@\n one\n-two\n+2\n";
    assert_eq!(hunks(a, 100).as_deref(), Some(expected));
    assert_eq!(hunks(a, 5), None);
    assert_eq!(hunks(binary, 100), None);
    assert_eq!(hunks(n, 100).as_deref(), Some("@@ -0,0 +1,1 @@\n+new\n"));
    assert_eq!(unified(b"same", b"same").as_deref(), Some(""));
    let gone = "@@ -1,2 +0,0 @@\n-a\n-b\n\\ No newline at end of file\n";
    assert_eq!(unified(b"a\nb", b"").as_deref(), Some(gone));
    let ended = "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n";
    assert_eq!(unified(b"a", b"a\n").as_deref(), Some(ended));
    let json = serde_json::to_value(n).unwrap();
    assert_eq!(json["what"], "created");
    assert_eq!(json["path"], "n");
}

#[test]
fn limits_are_kept() {
    let ground = Ground::new();
    ground.sh("echo a > a");
    let held = ground.hold();
    ground.layered(
        &held,
        "printf b > a; touch -d @0 a; truncate -s 1T huge; mkdir -p x/y/z",
    );
    let few = ReadLimits {
        entries: 3,
        ..ReadLimits::default()
    };
    let error = held.changes(&ground.lower, few).unwrap_err();
    assert_eq!(error.kind(), FsErrorKind::TooManyEntries { cap: 3 });
    // A size is no promise: what is too large to be read has no digest.
    let changes = ground.changes(&held);
    let huge = changes
        .entries
        .iter()
        .find(|it| it.path.display() == "huge");
    assert_eq!(huge.unwrap().after.as_ref().unwrap().digest, None);
    applied(&ground.keep(&held));
    assert_eq!(
        ground.sh("stat -c %s huge; du -k huge | cut -f1"),
        "1099511627776\n0\n"
    );
}
