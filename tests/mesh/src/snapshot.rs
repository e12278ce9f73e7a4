//! Tables that are checked in, so that a change of behaviour is a readable diff. UPDATE=1 in the environment rewrites them.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

/// Compares `text` with the file `snapshots/NAME.txt` of this crate.
///
/// # Panics
/// If they differ.
pub fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots").join(format!("{name}.txt"));
    if std::env::var_os("UPDATE").is_some_and(|v| v == "1") {
        std::fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        return;
    }
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (old, new) = (lines(&old), lines(text));
    let differs = (0..old.len().max(new.len())).filter(|i| old.get(*i) != new.get(*i));
    let differs: Vec<String> = differs
        .map(|i| {
            let line = |lines: &[String]| lines.get(i).cloned().unwrap_or_else(|| "(nothing)".to_owned());
            format!("  was {}\n  is  {}", line(&old), line(&new))
        })
        .collect();
    assert!(
        differs.is_empty(),
        "{} no longer holds; if that is meant: UPDATE=1 cargo test --release -p manet-mesh\n{}",
        path.display(),
        differs.join("\n")
    );
}

/// Applies `work` to each of `items`, one per core at a time; the results are in the order of the items.
pub fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..cores.min(items.len()) {
            scope.spawn(|| loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = items.get(i) else { return };
                let result = work(item);
                results.lock().expect("no worker panics with it").push((i, result));
            });
        }
    });
    let mut results = results.into_inner().expect("no worker panics with it");
    results.sort_by_key(|(i, _)| *i);
    results.into_iter().map(|(_, r)| r).collect()
}

/// A table with minimal columns, the first two aligned left, the others right, without blanks at the ends of lines.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let cells = |i: usize| rows.iter().map(move |r| r[i].chars().count());
    let widths: Vec<usize> = header.iter().enumerate().map(|(i, h)| cells(i).max().unwrap_or(0).max(h.len())).collect();
    let line = |row: Vec<&str>| {
        let cell = |(i, text): (usize, &&str)| match i {
            0 | 1 => format!("{text:<width$}", width = widths[i]),
            _ => format!("{text:>width$}", width = widths[i]),
        };
        let text: Vec<String> = row.iter().enumerate().map(cell).collect();
        text.join("  ").trim_end().to_owned() + "\n"
    };
    let mut text = line(header.to_vec());
    rows.iter().for_each(|r| text += &line(r.iter().map(String::as_str).collect()));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_in_parallel_comes_back_in_order() {
        let items: Vec<u64> = (0..50).collect();
        assert_eq!(in_parallel(&items, |n| n * n), items.iter().map(|n| n * n).collect::<Vec<_>>());
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["a".to_owned(), "x".to_owned(), "100".to_owned()], vec!["bb".into(), "y".into(), "7".into()]];
        assert_eq!(table(&["p", "q", "n"], &rows), "p   q    n\na   x  100\nbb  y    7\n");
    }
}
