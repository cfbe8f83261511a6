//! What a program writes on a layer, and what becomes of it.

use std::os::unix::fs::MetadataExt;

use glovebox_backend::Ending;
use glovebox_workspace::change::{EntryChange, Held};

use crate::overlay::ground::{Ground, applied, told};

const GOOD: Ending = Ending::Exited { code: 0 };

pub(crate) fn the_workspace_stays_as_it_is_until_the_changes_are_kept() {
    let ground = Ground::new();
    ground.furnish();
    let before = ground.tree();
    let held = ground.hold("one");
    let line = "set -e
        echo four >> a; rm b; mv c moved; chmod 600 d/x; ln d/x d/also
        rm -r d/e; mkdir d/e; echo fresh > d/e/new
        mkdir -p n/k; echo deep > n/k/file; ln -sfn moved link; ln -s /etc/passwd out
        python3 -c \"f = open('keep/me/whole', 'r+')\"
        rm -r keep/me/../../n/k/file; echo deep > n/k/file
        stat -c '%u %g' a n; id -u; pwd";
    let said = ground.run(&held, line);
    assert_eq!(said.ended.ending, GOOD, "{said:?}");
    assert_eq!(said.stdout, "1000 1000\n1000 1000\n1000\n/workspace/work\n");
    assert_eq!(ground.tree(), before);

    let changes = ground.changes(&held);
    let expected = [
        ("a", EntryChange::Modified),
        ("b", EntryChange::Removed),
        ("c", EntryChange::Removed),
        ("d/also", EntryChange::Created),
        ("d/e/f", EntryChange::Removed),
        ("d/e/f/z", EntryChange::Removed),
        ("d/e/new", EntryChange::Created),
        ("d/e/y", EntryChange::Removed),
        ("d/x", EntryChange::Touched),
        ("link", EntryChange::Modified),
        ("moved", EntryChange::Created),
        ("n", EntryChange::Created),
        ("n/k", EntryChange::Created),
        ("n/k/file", EntryChange::Created),
        ("out", EntryChange::Created),
    ];
    let expected: Vec<_> = expected.map(|(path, what)| (path.to_owned(), what)).into();
    assert_eq!(told(&changes), expected);
    // Opened for writing and not written.
    assert_eq!(changes.unchanged, 1);
    let a = &changes.entries[0];
    let hunks = glovebox_workspace::change::text(&ground.lower, held.upper(), a, 1 << 20).unwrap();
    assert_eq!(
        hunks.unwrap(),
        "@@ -1,3 +1,4 @@\n one\n two\n three\n+four\n"
    );
    assert_eq!(ground.tree(), before);

    applied(&ground.keep(&held));
    let mut after = before;
    for gone in ["b", "c", "d/e/f", "d/e/f/z", "d/e/y"] {
        after.remove(gone).unwrap();
    }
    for (path, line) in [
        ("a", "file 100644 1 19 one\ntwo\nthree\nfour\n"),
        ("moved", "file 100644 1 2 c\n"),
        ("d/x", "file 100600 2 2 x\n"),
        ("d/also", "file 100600 2 2 x\n"),
        ("d/e/new", "file 100644 1 6 fresh\n"),
        ("n", "directory 40755"),
        ("n/k", "directory 40755"),
        ("n/k/file", "file 100644 1 5 deep\n"),
        ("link", "link moved"),
        ("out", "link /etc/passwd"),
    ] {
        after.insert(path.to_owned(), line.to_owned());
    }
    assert_eq!(ground.tree(), after);
    // A second time it is the same answer, and nothing happens.
    applied(&ground.keep(&held));
    assert_eq!(ground.tree(), after);
    assert!(Held::remove(&ground.shelf, "one").unwrap());
    assert!(!Held::remove(&ground.shelf, "one").unwrap());
}

/// The kernel cannot rename a directory that lies below; `mv` copies it then.
pub(crate) fn a_directory_is_moved_by_copying() {
    let ground = Ground::new();
    ground.furnish();
    let held = ground.hold("one");
    let line = "python3 -c \"
import os, errno
try:
    os.rename('d', 'renamed')
    print('renamed')
except OSError as e:
    print(errno.errorcode[e.errno])
\"
        mv d moved && mv moved again && mkdir own && mv own own2 && find . | sort";
    let said = ground.run(&held, line);
    assert_eq!(said.ended.ending, GOOD, "{said:?}");
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert_eq!(lines[0], "EXDEV");
    applied(&ground.keep(&held));
    let mut now: Vec<String> = ground
        .tree()
        .into_keys()
        .map(|it| format!("./{it}"))
        .collect();
    now.push(".".to_owned());
    now.sort();
    assert_eq!(now, lines[1..]);
    assert_eq!(
        std::fs::read_to_string(ground.work().join("again/e/f/z")).unwrap(),
        "z\n"
    );
}

pub(crate) fn a_large_file_and_one_with_holes_arrive() {
    let ground = Ground::new();
    std::fs::write(ground.work().join("grows"), vec![7u8; 20 << 20]).unwrap();
    let held = ground.hold("one");
    let line = "head -c 30000000 /dev/urandom > large; sha256sum < large
        printf end | dd of=grows bs=1 seek=20971520 conv=notrunc 2> /dev/null; sha256sum < grows
        truncate -s 100M holes; printf x | dd of=holes bs=1 seek=50000000 conv=notrunc 2> /dev/null
        sha256sum < holes";
    let said = ground.run(&held, line);
    assert_eq!(said.ended.ending, GOOD, "{said:?}");
    applied(&ground.keep(&held));
    let sums: String = ["large", "grows", "holes"]
        .map(|name| {
            let file = std::fs::File::open(ground.work().join(name)).unwrap();
            let sum = std::process::Command::new("sha256sum").stdin(file).output();
            String::from_utf8(sum.unwrap().stdout).unwrap()
        })
        .concat();
    assert_eq!(sums, said.stdout);
    let holes = ground.work().join("holes").metadata().unwrap();
    assert_eq!(holes.len(), 100 << 20);
    assert!(holes.blocks() * 512 < 1 << 20, "{}", holes.blocks());
}

pub(crate) fn nothing_of_a_discarded_exec_is_left() {
    let ground = Ground::new();
    ground.furnish();
    let before = ground.tree();
    let held = ground.hold("one");
    // Directories that are closed to their own user are no hiding place.
    let line = "rm -r d; mkdir -p closed/inside; echo x > closed/inside/x; chmod 0 closed/inside
        chmod 0 closed; rm a";
    let said = ground.run(&held, line);
    assert_eq!(said.ended.ending, GOOD, "{said:?}");
    assert!(Held::remove(&ground.shelf, "one").unwrap());
    assert!(ground.shelf.list(10).unwrap().entries.is_empty());
    assert_eq!(ground.tree(), before);
}

pub(crate) fn two_execs_on_one_workspace_do_not_see_each_other() {
    let ground = Ground::new();
    ground.furnish();
    let (one, two) = (ground.hold("one"), ground.hold("two"));
    let said = ground.run(&one, "echo first > a; echo first > mine");
    assert_eq!(said.ended.ending, GOOD, "{said:?}");
    let said = ground.run(&two, "cat a; ls mine; echo second > b; echo second > a");
    assert_eq!(said.stdout, "one\ntwo\nthree\n");
    applied(&ground.keep(&one));
    // Both wrote one file, so the second has to look again.
    let outcome = ground.keep(&two);
    let glovebox_workspace::change::Outcome::Conflict { paths } = outcome else {
        panic!("{outcome:?}");
    };
    let paths: Vec<String> = paths.iter().map(|it| it.display()).collect();
    assert_eq!(paths, ["a"]);
    let read = |name: &str| std::fs::read_to_string(ground.work().join(name)).unwrap();
    assert_eq!((read("a").as_str(), read("b").as_str()), ("first\n", "b\n"));
}

/// Whoever owned the workspace owns what was written, and what was there keeps its owner.
pub(crate) fn files_keep_the_owner_of_the_workspace() {
    let ground = Ground::new();
    ground.furnish();
    let own = |path: &str, id| std::os::unix::fs::chown(path, Some(id), Some(id)).unwrap();
    let work = ground.work();
    let name = |name: &str| work.join(name).display().to_string();
    let everything: Vec<String> = ground.tree().into_keys().collect();
    for path in everything.iter().filter(|it| *it != "link") {
        own(&name(path), 4321);
    }
    own(&name(""), 4321);
    own(&name("c"), 77);
    let held = ground.hold("one");
    let line = "echo more >> a; mkdir n; echo new > n/new; ln -s x n/l; stat -c %u c
        echo mine > c || rm -f c || echo theirs";
    let said = ground.run(&held, line);
    assert_eq!(said.ended.ending, GOOD, "{said:?}");
    assert_eq!(said.stdout, "65534\ntheirs\n");
    applied(&ground.keep(&held));
    for path in ["a", "n", "n/new", "n/l"] {
        let facts = work.join(path).symlink_metadata().unwrap();
        assert_eq!((facts.uid(), facts.gid()), (4321, 4321), "{path}");
    }
    assert_eq!(work.join("c").metadata().unwrap().uid(), 77);
    assert_eq!(std::fs::read_to_string(work.join("c")).unwrap(), "c\n");
}
