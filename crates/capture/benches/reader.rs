//! Reading beside the bare loop, without other programs: `cargo bench -p capture [-- COLUMNS ROWS]`.
//!
//! The whole comparison is `kavg bench capture`; this is for work on the reader.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::{
    fs::File,
    io::{self, BufWriter},
    num::NonZeroUsize,
    time::Instant,
};

use capture::{
    ReadOptions,
    bench::{Shape, bare_loop, disk_cells, generate},
    read,
};

fn main() -> io::Result<()> {
    let sizes: Vec<usize> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    let (columns, rows) = match sizes.as_slice() {
        [columns, rows, ..] => (*columns, *rows),
        _ => (20_000, 4_500),
    };
    let path = std::env::temp_dir().join(format!("kavg-reader-{columns}x{rows}.csv"));
    if !path.exists() {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(&path)?);
        generate(Shape { columns, rows }, &mut file, &mut |_| ())?;
    }
    let disk = disk_cells(&path)?;
    println!("{} MB, {} disk columns", std::fs::metadata(&path)?.len() / 1_000_000, disk.len());
    for threads in [1, 2] {
        let name = format!("bare loop, {threads} threads");
        best(&name, || Ok(bare_loop(&path, &disk, threads)? as usize))?;
        let threads = NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN);
        let options = ReadOptions { threads, ..ReadOptions::default() };
        best(&format!("read, {threads} threads"), || {
            let capture = read(std::slice::from_ref(&path), &options, &mut |_, _| ())
                .map_err(io::Error::other)?;
            Ok(capture.recordings[0].len())
        })?;
    }
    Ok(())
}

/// Prints the shortest of ten runs.
fn best(what: &str, mut run: impl FnMut() -> io::Result<usize>) -> io::Result<()> {
    let mut shortest = f64::INFINITY;
    for _ in 0..10 {
        let start = Instant::now();
        std::hint::black_box(run()?);
        shortest = shortest.min(start.elapsed().as_secs_f64());
    }
    println!("{what}: {shortest:.3} s");
    Ok(())
}
