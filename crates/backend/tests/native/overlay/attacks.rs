//! What a program may try on its layer.

use std::os::unix::fs::PermissionsExt;

use glovebox_backend::Ending;
use glovebox_workspace::change::EntryChange;

use crate::overlay::ground::{Ground, applied, told};

const GOOD: Ending = Ending::Exited { code: 0 };

pub(crate) fn the_layer_is_seen_nowhere_else() {
    const CANARY: &str = "canary-9b0e";
    let ground = Ground::new();
    ground.furnish();
    let held = ground.hold("one");
    let line = format!(
        "echo x > {CANARY}
        ls -A / | grep layer; ls /.layer 2> /dev/null
        find / -name {CANARY} 2> /dev/null
        find / -name whole 2> /dev/null
        grep -c workspace /proc/self/mountinfo
        umount /workspace/work 2> /dev/null || echo no
        mount -t overlay x -o lowerdir=/usr,upperdir=/tmp,workdir=/dev/shm /workspace/work \
            2> /dev/null || echo no
        mount -o remount,lowerdir=/usr /workspace/work 2> /dev/null || echo no"
    );
    let said = ground.run(&held, &line);
    assert_eq!(
        said.stdout,
        format!("/workspace/work/{CANARY}\n/workspace/work/keep/me/whole\n1\nno\nno\nno\n"),
        "{said:?}"
    );
}

/// Both walls: the mounts, and Landlock in front of what the mounts leave open.
pub(crate) fn rules_for_files_hold_on_a_layer() {
    let ground = Ground::new();
    ground.furnish();
    let held = ground.hold("one");
    let line = "echo in > fine && mkdir -p p/q && mv fine p/q/fine && rm a && cat p/q/fine
        for file in /proc/self/oom_score_adj /proc/self/coredump_filter; do
            cat $file > /dev/null && (echo 0 > $file) 2>&1 | grep -o 'Permission denied'
        done
        (echo 0 > /workspace/x) 2>&1 | grep -o 'Read-only file system'
        (ln /usr/bin/env stolen) 2>&1 | grep -o 'Invalid cross-device link'";
    let said = ground.run(&held, line);
    assert_eq!(
        said.stdout,
        "in\nPermission denied\nPermission denied\nRead-only file system\n\
         Invalid cross-device link\n",
        "{said:?}"
    );
}

pub(crate) fn marks_of_the_kernel_cannot_be_forged() {
    let ground = Ground::new();
    ground.furnish();
    let before = ground.tree();
    let held = ground.hold("one");
    let line = "python3 - <<'END'
import os, stat
os.mkdir('n')
for path in ['d', 'n', 'keep', 'a']:
    for name in ['opaque', 'whiteout', 'origin', 'redirect', 'metacopy', 'overlay.opaque']:
        value = b'y' if name == 'opaque' else b'/b'
        os.setxattr(path, 'user.overlay.' + name, value)
open('empty', 'w').close()
os.setxattr('empty', 'user.overlay.whiteout', b'y')
os.setxattr('empty', 'user.mine', b'kept')
for attempt in [
    lambda: os.mknod('b2', 0o600 | stat.S_IFCHR, os.makedev(0, 0)),
    lambda: os.mknod('b', 0o600 | stat.S_IFCHR, os.makedev(0, 0)),
    lambda: os.setxattr('d', 'trusted.overlay.opaque', b'y'),
    lambda: os.setxattr('a', 'security.capability', b'x' * 20),
]:
    try:
        attempt()
        print('done')
    except OSError as error:
        print(error.strerror)
END";
    let said = ground.run(&held, line);
    assert_eq!(said.ended.ending, GOOD, "{said:?}");
    assert!(!said.stdout.contains("done"), "{said:?}");
    let changes = ground.changes(&held);
    // Nothing is gone, and nothing looks opaque.
    let expected = [("empty", EntryChange::Created), ("n", EntryChange::Created)];
    let expected: Vec<_> = expected.map(|(path, what)| (path.to_owned(), what)).into();
    assert_eq!(told(&changes), expected);
    assert!(changes.dropped_attributes >= 20, "{changes:?}");
    applied(&ground.keep(&held));
    let mut after = before;
    after.insert("n".to_owned(), "directory 40755".to_owned());
    after.insert("empty".to_owned(), "file 100644 1 0 ".to_owned());
    assert_eq!(ground.tree(), after);
    for path in ["d", "n", "keep", "a", "empty"] {
        let mut names = [0u8; 4096];
        let place = ground.work().join(path);
        let length = rustix::fs::listxattr(&place, &mut names[..]).unwrap();
        let names = String::from_utf8_lossy(&names[..length]).into_owned();
        assert!(!names.contains("overlay"), "{path} {names}");
        assert_eq!(
            names.contains("user.mine"),
            path == "empty",
            "{path} {names}"
        );
    }
}

pub(crate) fn what_is_no_file_stays_behind() {
    let ground = Ground::new();
    ground.furnish();
    let held = ground.hold("one");
    let line = "mkfifo fifo; rm a; mkfifo a; mkdir n; mkfifo n/fifo
        python3 -c \"
import socket, os
s = socket.socket(socket.AF_UNIX); s.bind('socket')
open('suid', 'w').close()
for mode in [0o4755, 0o2755, 0o6777]:
    try:
        os.chmod('suid', mode)
        print('set')
    except OSError as error:
        print(error.strerror)
os.chmod('suid', 0o755)
\"";
    let said = ground.run(&held, line);
    assert_eq!(said.ended.ending, GOOD, "{said:?}");
    assert!(!said.stdout.contains("set\n"), "{said:?}");
    // As if the filter had let it through.
    let suid = ground.yard.house.path().join("held/one/layer/upper/suid");
    std::fs::set_permissions(&suid, PermissionsExt::from_mode(0o6755)).unwrap();
    let changes = ground.changes(&held);
    let mut skipped: Vec<String> = changes.skipped.iter().map(|it| it.path.display()).collect();
    skipped.sort();
    assert_eq!(skipped, ["a", "fifo", "n/fifo", "socket"]);
    applied(&ground.keep(&held));
    let after = ground.tree();
    assert_eq!(after["a"], "file 100644 1 14 one\ntwo\nthree\n");
    assert_eq!(after["suid"], "file 100755 1 0 ");
    for gone in ["fifo", "n/fifo", "socket"] {
        assert!(!after.contains_key(gone), "{gone}");
    }
}

/// Links in the layer, and links that were put into the workspace after the run.
pub(crate) fn links_lead_nowhere() {
    let ground = Ground::new();
    ground.furnish();
    let outside = ground.yard.house.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("x"), "theirs\n").unwrap();
    let held = ground.hold("one");
    let target = outside.display();
    let line = format!(
        "rm -r d && ln -s {target} d; ln -s {target}/x leaf; rm c; ln -s ../outside c
        echo in > keep/me/new; echo more >> keep/me/whole"
    );
    let said = ground.run(&held, &line);
    assert_eq!(said.ended.ending, GOOD, "{said:?}");
    // Somebody exchanges a directory of the workspace for a link that leads out.
    std::fs::rename(ground.work().join("keep/me"), outside.join("me")).unwrap();
    std::os::unix::fs::symlink(outside.join("me"), ground.work().join("keep/me")).unwrap();
    let before = ground.tree();
    let outcome = ground.keep(&held);
    assert!(
        matches!(
            outcome,
            glovebox_workspace::change::Outcome::Conflict { .. }
        ),
        "{outcome:?}"
    );
    assert_eq!(ground.tree(), before);
    let theirs = crate::overlay::ground::tree(&outside);
    assert_eq!(theirs["x"], "file 100644 1 7 theirs\n");
    assert_eq!(theirs["me/whole"], "file 100644 1 10 untouched\n");
    assert!(!theirs.contains_key("me/new"));
    // Without that, what the program planted arrives as the link it is.
    std::fs::remove_file(ground.work().join("keep/me")).unwrap();
    std::fs::rename(outside.join("me"), ground.work().join("keep/me")).unwrap();
    let outcome = ground.keep(&held);
    // The directory was moved away and back, but nothing in it that was written.
    applied(&outcome);
    let after = ground.tree();
    assert_eq!(after["d"], format!("link {target}"));
    assert_eq!(after["leaf"], format!("link {target}/x"));
    assert_eq!(after["keep/me/new"], "file 100644 1 3 in\n");
    assert_eq!(
        crate::overlay::ground::tree(&outside)["x"],
        "file 100644 1 7 theirs\n"
    );
}
