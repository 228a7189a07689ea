//! The table of [`write_csv`](crate::write_csv) as Parquet.

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

use crate::table::{NAMES, counters, names};

/// Rows that are compressed together.
const GROUP_ROWS: usize = 1 << 20;

/// Writes the table as Parquet.
///
/// # Errors
/// Those of `out`.
pub fn write_parquet(recordings: &[Recording], out: impl Write + Send) -> io::Result<()> {
    write_table(recordings, out).map_err(|error| match error {
        ParquetError::External(of_out) => {
            of_out.downcast().map_or_else(io::Error::other, |of_out| *of_out)
        }
        of_ours => io::Error::other(of_ours),
    })
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
    for name in NAMES {
        let field = Type::primitive_type_builder(name, PhysicalType::BYTE_ARRAY)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(Some(LogicalType::String))
            .build()?;
        fields.push(Arc::new(field));
    }
    for counter in counters {
        let field = Type::primitive_type_builder(counter.info().key, PhysicalType::DOUBLE)
            .with_repetition(Repetition::OPTIONAL)
            .build()?;
        fields.push(Arc::new(field));
    }
    Type::group_type_builder("counters").with_fields(fields).build()
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
        for place in 0..NAMES.len() {
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
            let name = names(self.recording, self.recording.entity(id))[place];
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
}
