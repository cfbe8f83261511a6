//! Patterns and text.

use std::time::Duration;

use glovebox_workspace::files::{
    self, Case, FileError, GlobOptions, GrepLimits, GrepOptions, Grepped, Hidden, Needle,
};

use crate::files::place::{Place, place, place_in_memory, rel};

fn glob(place: &Place, pattern: &str, hidden: Hidden) -> Vec<String> {
    let options = GlobOptions {
        hidden,
        ..GlobOptions::default()
    };
    let found = files::glob(&place.dir, None, pattern, &options).unwrap();
    assert!(!found.truncated);
    found.paths.iter().map(|(path, _)| path.display()).collect()
}

#[test]
fn a_star_stays_within_a_name_and_two_cross_directories() {
    let place = place();
    for name in [
        "a.rs",
        "src/b.rs",
        "src/deep/c.rs",
        "src/d.txt",
        ".git/e.rs",
        ".hidden.rs",
    ] {
        place.file(name, b"");
    }
    place.link(&place.outside, "out");
    let skip = |pattern| glob(&place, pattern, Hidden::Skip);
    assert_eq!(skip("*.rs"), ["a.rs"]);
    assert_eq!(skip("*/*.rs"), ["src/b.rs"]);
    assert_eq!(skip("**/*.rs"), ["a.rs", "src/b.rs", "src/deep/c.rs"]);
    assert_eq!(
        skip("src/**"),
        ["src/b.rs", "src/d.txt", "src/deep", "src/deep/c.rs"]
    );
    assert_eq!(skip("{a,src/b}.rs"), ["a.rs", "src/b.rs"]);
    assert_eq!(skip("src/[a-c].rs"), ["src/b.rs"]);
    assert_eq!(skip("**/canary"), [""; 0], "no link is followed");
    assert_eq!(skip("out"), ["out"]);
    let show = |pattern| glob(&place, pattern, Hidden::Show);
    assert_eq!(show("*.rs"), [".hidden.rs", "a.rs"]);
    assert_eq!(show("**/e.rs"), [".git/e.rs"]);
}

#[test]
fn patterns_that_are_none_are_refused_and_large_answers_are_cut() {
    let place = place();
    let options = GlobOptions::default();
    let long = "a".repeat(1025);
    let braces = "{a,".repeat(40);
    for pattern in ["", "/etc/*", "../*", "a/../b", "[", "{a", &long, &braces] {
        let refused = files::glob(&place.dir, None, pattern, &options).unwrap_err();
        assert!(matches!(refused, FileError::Glob { .. }), "{pattern}");
    }
    for n in 0..10 {
        place.file(&format!("f{n}"), b"");
    }
    let few = GlobOptions {
        paths: 3,
        ..GlobOptions::default()
    };
    let found = files::glob(&place.dir, None, "*", &few).unwrap();
    assert_eq!((found.paths.len(), found.truncated), (3, true));
    let exact = GlobOptions {
        paths: 10,
        ..GlobOptions::default()
    };
    assert!(
        !files::glob(&place.dir, None, "*", &exact)
            .unwrap()
            .truncated
    );
    let entries = GlobOptions {
        entries: 5,
        ..GlobOptions::default()
    };
    let found = files::glob(&place.dir, None, "*", &entries).unwrap();
    assert_eq!((found.paths.len(), found.truncated), (5, true));
}

fn grep(place: &Place, needle: &Needle, options: &GrepOptions) -> Grepped {
    files::grep(&place.dir, None, needle, options).unwrap()
}

fn hits(found: &Grepped) -> Vec<(String, u64, usize, String)> {
    let hit = |found: &files::Found| {
        let line = &found.line;
        (
            found.path.display(),
            line.number,
            found.column,
            line.text.display(),
        )
    };
    found.found.iter().map(hit).collect()
}

#[test]
fn text_is_found_with_its_place_and_what_is_around_it() {
    let place = place();
    place.file("a.txt", b"one\ntwo a.b\nthree\nfour axb");
    place.file("sub/b.txt", b"A.B\r\n");
    place.link(place.outside.join("canary"), "canary");
    let literal = |text: &str| Needle::Literal(text.to_owned());
    let plain = GrepOptions::default();
    let found = grep(&place, &literal("a.b"), &plain);
    assert_eq!(hits(&found), [("a.txt".into(), 2, 4, "two a.b".into())]);
    let regex = grep(&place, &Needle::Regex("^.*a.b$".into()), &plain);
    assert_eq!(hits(&regex).len(), 2);
    let ignore = GrepOptions {
        case: Case::Ignore,
        context: 1,
        ..GrepOptions::default()
    };
    let found = grep(&place, &literal("a.b"), &ignore);
    assert_eq!(hits(&found)[1], ("sub/b.txt".into(), 1, 0, "A.B\r".into()));
    let around = |lines: &[files::Line]| -> Vec<(u64, String)> {
        lines
            .iter()
            .map(|line| (line.number, line.text.display()))
            .collect()
    };
    assert_eq!(around(&found.found[0].before), [(1, "one".into())]);
    assert_eq!(around(&found.found[0].after), [(3, "three".into())]);
    assert_eq!(around(&found.found[1].before), []);
    assert_eq!(around(&found.found[1].after), []);
    assert_eq!(found.files, 2);
    let canary = grep(&place, &literal("host"), &plain);
    assert_eq!(canary.found, [], "no link is followed");
    let sub = files::grep(&place.dir, Some(&rel("sub")), &literal("A"), &plain).unwrap();
    assert_eq!(hits(&sub)[0].0, "b.txt");
}

#[test]
fn files_are_chosen_by_patterns_and_binary_ones_are_passed_over() {
    let place = place();
    for name in ["a.rs", "b.txt", "target/c.rs", ".env", "src/d.rs"] {
        place.file(name, b"needle");
    }
    place.file("bin.rs", b"needle\0needle");
    let needle = Needle::Literal("needle".into());
    let names = |options: &GrepOptions| -> Vec<String> {
        let found = grep(&place, &needle, options);
        hits(&found).into_iter().map(|hit| hit.0).collect()
    };
    let mut options = GrepOptions {
        include: vec!["**/*.rs".into()],
        exclude: vec!["target".into()],
        ..GrepOptions::default()
    };
    assert_eq!(names(&options), ["a.rs", "src/d.rs"]);
    assert_eq!(grep(&place, &needle, &options).binary, 1);
    options.include.clear();
    options.hidden = Hidden::Show;
    assert_eq!(names(&options), [".env", "a.rs", "b.txt", "src/d.rs"]);
    options.exclude = vec!["[".into()];
    let refused = files::grep(&place.dir, None, &needle, &options).unwrap_err();
    assert!(matches!(refused, FileError::Glob { .. }));
}

#[test]
fn every_bound_that_ends_a_search_is_told() {
    let place = place();
    for n in 0..5 {
        place.file(&format!("f{n}"), b"x\nx\nx\n");
    }
    let needle = Needle::Literal("x".into());
    let limited = |limits: GrepLimits| {
        let options = GrepOptions {
            limits,
            ..GrepOptions::default()
        };
        grep(&place, &needle, &options)
    };
    let usual = GrepLimits::default();
    assert!(!limited(usual).truncated);
    assert_eq!(limited(usual).found.len(), 15);
    let exact = limited(GrepLimits {
        matches: 15,
        ..usual
    });
    assert!(!exact.truncated);
    let few = limited(GrepLimits {
        matches: 14,
        ..usual
    });
    assert_eq!((few.found.len(), few.truncated), (14, true));
    assert!(limited(GrepLimits { files: 4, ..usual }).truncated);
    assert!(
        limited(GrepLimits {
            total_bytes: 29,
            ..usual
        })
        .truncated
    );
    assert!(
        limited(GrepLimits {
            entries: 4,
            ..usual
        })
        .truncated
    );
    let late = limited(GrepLimits {
        time: Duration::ZERO,
        ..usual
    });
    assert_eq!((late.found.len(), late.truncated), (0, true));
    let small = limited(GrepLimits {
        file_bytes: 5,
        ..usual
    });
    assert_eq!((small.found.len(), small.skipped), (0, 5));
}

#[test]
fn expressions_that_cost_too_much_are_refused() {
    let place = place();
    let options = GrepOptions::default();
    let long = "a".repeat(5000);
    for text in [
        "(",
        "a{1000}{1000}",
        "\\p{L}{500}",
        "(?:a{100}){100}",
        "\\",
        long.as_str(),
    ] {
        let needle = Needle::Regex(text.to_owned());
        let refused = files::grep(&place.dir, None, &needle, &options).unwrap_err();
        assert!(
            matches!(refused, FileError::Regex { .. }),
            "{text}: {refused:?}"
        );
        assert!(!refused.to_string().contains('\n'), "{refused}");
    }
    let nothing = Needle::Literal(String::new());
    let refused = files::grep(&place.dir, None, &nothing, &options).unwrap_err();
    assert_eq!(refused, FileError::EmptyNeedle);
}

#[test]
fn a_line_that_never_ends_is_searched_as_far_as_time_allows() {
    let place = place_in_memory();
    let mut text = vec![b'a'; 4 << 20];
    text.extend_from_slice(b"needle");
    place.file("f", &text);
    let limits = GrepLimits {
        line_bytes: 40,
        ..GrepLimits::default()
    };
    let options = GrepOptions {
        limits,
        ..GrepOptions::default()
    };
    let found = grep(&place, &Needle::Literal("needle".into()), &options);
    assert_eq!(found.found[0].column, 4 << 20);
    let shown = found.found[0].line.text.display();
    assert!(shown.len() <= 40 && shown.ends_with("needle"), "{shown}");
    let regex = Needle::Regex("(a*)*needle|(a|aa)+$x".into());
    let found = grep(&place, &regex, &options);
    assert_eq!((found.found.len(), found.long_lines), (0, 1));
}
