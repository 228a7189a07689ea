//! Tables as Parquet: that of [`write_csv`](crate::write_csv), and any that comes row by row.

use std::{
    io::{self, Write},
    sync::Arc,
};

use counters::{Counter, EntityId, Recording};
use parquet::{
    basic::{Compression, LogicalType, Repetition, TimeUnit, Type as PhysicalType},
    data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type},
    errors::ParquetError,
    file::{
        properties::WriterProperties,
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::types::Type,
};

use crate::table::{Cell, ROW_NAMES, counters, row_names};

/// Rows that are compressed together.
const GROUP_ROWS: usize = 1 << 20;

/// Writes the table as Parquet.
///
/// # Errors
/// Those of `out`.
pub fn write_parquet(recordings: &[Recording], out: impl Write + Send) -> io::Result<()> {
    write_table(recordings, out).map_err(of_writer)
}

/// The error of the writer below, where it is one.
fn of_writer(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(of_out) => {
            of_out.downcast().map_or_else(io::Error::other, |of_out| *of_out)
        }
        of_ours => io::Error::other(of_ours),
    }
}

fn write_table(recordings: &[Recording], out: impl Write + Send) -> Result<(), ParquetError> {
    let counters = counters(recordings);
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let schema = Arc::new(schema(&counters)?);
    let mut file = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
    for recording in recordings {
        let ids: Vec<EntityId> = (0..recording.entities().len() as u32).map(EntityId).collect();
        for ids in ids.chunks((GROUP_ROWS / recording.len().max(1)).max(1)) {
            let mut group = file.next_row_group()?;
            Group { recording, ids, writer: &mut group }.write(&counters)?;
            group.close()?;
        }
    }
    file.close()?;
    Ok(())
}

fn schema(counters: &[Counter]) -> Result<Type, ParquetError> {
    let time = Type::primitive_type_builder("time", PhysicalType::INT64)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(Some(LogicalType::timestamp(true, TimeUnit::MILLIS)))
        .build()?;
    let mut fields = vec![Arc::new(time)];
    for name in ROW_NAMES {
        fields.push(text_field(name)?);
    }
    for counter in counters {
        fields.push(number_field(counter.info().key)?);
    }
    Type::group_type_builder("counters").with_fields(fields).build()
}

fn text_field(name: &str) -> Result<Arc<Type>, ParquetError> {
    let field = Type::primitive_type_builder(name, PhysicalType::BYTE_ARRAY)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(Some(LogicalType::String));
    field.build().map(Arc::new)
}

fn number_field(name: &str) -> Result<Arc<Type>, ParquetError> {
    let field = Type::primitive_type_builder(name, PhysicalType::DOUBLE)
        .with_repetition(Repetition::OPTIONAL);
    field.build().map(Arc::new)
}

/// Some objects of a recording on their way into a row group.
struct Group<'a, 'b, W: Write + Send> {
    recording: &'a Recording,
    ids: &'a [EntityId],
    writer: &'a mut SerializedRowGroupWriter<'b, W>,
}

impl<W: Write + Send> Group<'_, '_, W> {
    fn write(&mut self, counters: &[Counter]) -> Result<(), ParquetError> {
        let times = self.recording.times_ms.repeat(self.ids.len());
        self.column::<Int64Type>(&times, None)?;
        for place in 0..ROW_NAMES.len() {
            self.names(place)?;
        }
        for &counter in counters {
            self.counter(counter)?;
        }
        Ok(())
    }

    fn column<T: parquet::data_type::DataType>(
        &mut self,
        values: &[T::T],
        present: Option<&[i16]>,
    ) -> Result<(), ParquetError> {
        if let Some(mut column) = self.writer.next_column()? {
            column.typed::<T>().write_batch(values, present, None)?;
            column.close()?;
        }
        Ok(())
    }

    fn names(&mut self, place: usize) -> Result<(), ParquetError> {
        let (mut values, mut present) = (Vec::new(), Vec::new());
        for &id in self.ids {
            let name = row_names(self.recording, self.recording.entity(id))[place];
            let samples = self.recording.len();
            present.resize(present.len() + samples, i16::from(name.is_some()));
            if let Some(name) = name {
                values.resize(values.len() + samples, ByteArray::from(name));
            }
        }
        self.column::<ByteArrayType>(&values, Some(&present))
    }

    fn counter(&mut self, counter: Counter) -> Result<(), ParquetError> {
        let (mut values, mut present) = (Vec::new(), Vec::new());
        for &id in self.ids {
            let series = self.recording.series(id, counter);
            for sample in 0..self.recording.len() {
                let value = series.map_or(f64::NAN, |series| series[sample]);
                present.push(i16::from(!value.is_nan()));
                values.extend((!value.is_nan()).then_some(value));
            }
        }
        self.column::<DoubleType>(&values, Some(&present))
    }
}

/// A table of text and numbers that is written row by row.
pub struct ParquetRows<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Vec<Column>,
}

/// The cells of a column that are not written yet.
struct Column {
    cells: Cells,
    /// Of each cell, whether there is one.
    present: Vec<i16>,
}

enum Cells {
    Text(Vec<ByteArray>),
    Number(Vec<f64>),
}

impl<W: Write + Send> ParquetRows<W> {
    /// Rows that are kept until they are written: so many of a hundred columns are a dozen MiB.
    const ROWS: usize = 1 << 14;

    /// A table with these columns, of text or of numbers.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, bool)>, out: W) -> io::Result<Self> {
        let (mut fields, mut cells) = (Vec::new(), Vec::new());
        for (name, is_number) in columns {
            let field = if is_number { number_field(name) } else { text_field(name) };
            fields.push(field.map_err(of_writer)?);
            let empty = if is_number { Cells::Number(vec![]) } else { Cells::Text(vec![]) };
            cells.push(Column { cells: empty, present: Vec::new() });
        }
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let schema = Type::group_type_builder("rows").with_fields(fields).build();
        let file = schema.and_then(|schema| {
            SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))
        });
        Ok(Self { file: file.map_err(of_writer)?, columns: cells })
    }

    /// Adds a row, a cell for each column; one that is of the other kind is none.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            let is_there = match (&mut column.cells, cell) {
                (Cells::Text(all), Cell::Text(text)) => {
                    all.push(ByteArray::from(*text));
                    true
                }
                (Cells::Number(all), Cell::Number(number)) => {
                    all.push(*number);
                    true
                }
                _ => false,
            };
            column.present.push(is_there.into());
        }
        match self.columns.first() {
            Some(first) if first.present.len() >= Self::ROWS => self.write().map_err(of_writer),
            _ => Ok(()),
        }
    }

    /// Writes what is left, and the end of the file.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn finish(mut self) -> io::Result<()> {
        self.write().and_then(|()| self.file.close()).map(drop).map_err(of_writer)
    }

    /// Writes the rows so far as a group.
    fn write(&mut self) -> Result<(), ParquetError> {
        let mut group = self.file.next_row_group()?;
        for Column { cells, present } in &mut self.columns {
            let Some(mut column) = group.next_column()? else { break };
            match cells {
                Cells::Text(cells) => {
                    column.typed::<ByteArrayType>().write_batch(cells, Some(present), None)?;
                    cells.clear();
                }
                Cells::Number(cells) => {
                    column.typed::<DoubleType>().write_batch(cells, Some(present), None)?;
                    cells.clear();
                }
            }
            column.close()?;
            present.clear();
        }
        group.close().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::recording;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    #[test]
    fn parquet_has_the_same_rows() {
        let mut out = Vec::new();
        write_parquet(&[recording()], &mut out).expect("memory takes all");
        let reader = SerializedFileReader::new(bytes::Bytes::from(out)).expect("readable");
        assert_eq!(reader.metadata().file_metadata().num_rows(), 6);
        let rows = reader.get_row_iter(None).expect("rows");
        let second = rows.map(|row| row.expect("row").to_string()).nth(1).expect("a second row");
        for part in ["host: \"esx01\"", "object: \"naa.1\"", "load: null", "vm: null"] {
            assert!(second.contains(part), "{second}");
        }
    }
    #[test]
    fn rows_of_any_table_are_read_again() {
        let mut out = Vec::new();
        let columns = [("a", false), ("b", true)];
        let mut table = ParquetRows::new(columns, &mut out).expect("memory takes all");
        for row in [[Cell::Text("x"), Cell::Number(0.5)], [Cell::None, Cell::None]] {
            table.row(&row).expect("memory takes all");
        }
        table.finish().expect("memory takes all");
        let reader = SerializedFileReader::new(bytes::Bytes::from(out)).expect("readable");
        let rows = reader.get_row_iter(None).expect("rows");
        let rows: Vec<_> = rows.map(|row| row.expect("row").to_string()).collect();
        assert_eq!(rows, ["{a: \"x\", b: 0.5}", "{a: null, b: null}"]);
    }
}
