//! Listings, page by page.

use std::collections::BTreeSet;

use glovebox_workspace::files::{self, Cursor, FileError, ListOptions, Page};
use proptest::prelude::*;

use crate::files::place::{Place, place, place_in_memory, rel};

fn page(place: &Place, depth: usize, entries: usize, after: Option<Cursor>) -> Page {
    let options = ListOptions {
        depth,
        entries,
        after,
        ..ListOptions::default()
    };
    files::list(&place.dir, None, &options).unwrap()
}

fn paths(page: &Page) -> Vec<String> {
    page.entries
        .iter()
        .map(|entry| entry.path.display())
        .collect()
}

/// By parts, as the order is: `a`, `a/b`, `a.c`.
fn parts(path: &str) -> Vec<Vec<u8>> {
    path.split('/')
        .map(|part| part.as_bytes().to_vec())
        .collect()
}

#[test]
fn entries_come_by_name_and_directories_before_what_is_in_them() {
    let place = place();
    for name in ["a.c", "a/b", "a/z/y", "B", "\u{e9}", "a/a"] {
        place.file(name, b"x");
    }
    place.link("/", "link");
    let one = page(&place, 1, 100, None);
    assert_eq!(paths(&one), ["B", "a", "a.c", "link", "\u{e9}"]);
    assert_eq!(one.next, None);
    let all = page(&place, 10, 100, None);
    let expected = [
        "B", "a", "a/a", "a/b", "a/z", "a/z/y", "a.c", "link", "\u{e9}",
    ];
    assert_eq!(paths(&all), expected);
    assert_eq!(paths(&page(&place, 2, 100, None)).len(), 8);
    let sub = files::list(&place.dir, Some(&rel("a")), &ListOptions::default()).unwrap();
    assert_eq!(paths(&sub), ["a", "b", "z"]);
}

#[test]
fn pages_join_to_the_whole() {
    let place = place();
    for n in 0..30 {
        place.file(&format!("d{}/f{n}", n % 4), b"");
    }
    let whole = paths(&page(&place, 9, 1000, None));
    for size in [1, 2, 3, 7, 34, 35] {
        let mut seen = Vec::new();
        let mut after = None;
        loop {
            let page = page(&place, 9, size, after);
            seen.extend(paths(&page));
            match page.next {
                Some(cursor) => after = Some(Cursor::parse(&cursor.to_string()).unwrap()),
                None => break,
            }
        }
        assert_eq!(seen, whole, "{size}");
    }
}

#[test]
fn a_cursor_survives_the_removal_of_what_it_points_at() {
    let place = place();
    for name in ["a/1", "a/2", "b/1", "b/2", "c"] {
        place.file(name, b"");
    }
    let first = page(&place, 9, 2, None);
    assert_eq!(paths(&first), ["a", "a/1"]);
    place.dir.remove_all(&rel("a")).unwrap();
    place.file("aa", b"");
    let rest = page(&place, 9, 100, first.next);
    assert_eq!(paths(&rest), ["aa", "b", "b/1", "b/2", "c"]);
}

#[test]
fn a_cursor_of_nobody_is_refused() {
    for text in ["", "zz", "6", "2e2e", "2f", "00", "612f2e2e2f62"] {
        assert_eq!(Cursor::parse(text), Err(FileError::Cursor), "{text}");
    }
}

#[test]
fn a_large_directory_costs_no_more_memory_than_a_page() {
    let place = place_in_memory();
    std::fs::create_dir(place.inside.join("many")).unwrap();
    for n in 0..20_000 {
        std::fs::write(place.inside.join(format!("many/{n:05}")), b"").unwrap();
    }
    let first = page(&place, 2, 3, None);
    assert_eq!(paths(&first), ["many", "many/00000", "many/00001"]);
    let next = page(&place, 2, 3, first.next);
    assert_eq!(paths(&next), ["many/00002", "many/00003", "many/00004"]);
}

#[test]
fn deep_trees_are_listed_as_far_as_they_are_entered() {
    let place = place_in_memory();
    let deep = vec!["d"; 300].join("/");
    std::fs::create_dir_all(place.inside.join(&deep)).unwrap();
    let page = page(&place, usize::MAX, 1000, None);
    assert_eq!((page.entries.len(), page.unread), (128, 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever is made and removed between pages: what stays is seen once, in order.
    #[test]
    fn what_stays_is_listed_exactly_once(
        stays in prop::collection::btree_set("[ab.]/[abc]{1,2}|[c-e.]x", 1..20),
        comes in prop::collection::vec("[abc]/[a-f]{1,3}|[a-e]y", 0..10),
        size in 1usize..6,
    ) {
        let place = place_in_memory();
        let stays: BTreeSet<String> = stays.into_iter().filter(|path| !path.starts_with("./")).collect();
        for path in &stays {
            place.file(path, b"");
        }
        let mut seen = Vec::new();
        let mut after = None;
        let mut changes = comes.iter();
        loop {
            let page = page(&place, 9, size, after);
            seen.extend(paths(&page));
            match page.next {
                Some(cursor) => after = Some(cursor),
                None => break,
            }
            if let Some(path) = changes.next() {
                match place.inside.join(path).exists() {
                    true if !stays.contains(path) => drop(place.dir.remove_all(&rel(path))),
                    true => {}
                    false => place.file(path, b""),
                }
            }
        }
        prop_assert!(seen.is_sorted_by_key(|path| parts(path)));
        for path in &stays {
            prop_assert_eq!(seen.iter().filter(|seen| *seen == path).count(), 1, "{}", path);
        }
    }
}
