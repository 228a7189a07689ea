//! Counters on the wire: who is who once, then rows of numbers.

use counters::{Controller, Counter, Entity, EntityId, Kind, Recording};
use serde::{Deserialize, Serialize};

/// Who is who on a host, and what each value of a row is.
#[derive(Debug, Deserialize, Serialize)]
pub struct Layout {
    host: String,
    objects: Vec<Object>,
    /// Of each column the place of its object, and the key of its counter.
    columns: Vec<(u32, String)>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Object {
    kind: String,
    name: String,
    /// Places of the objects that it belongs to.
    device: Option<u32>,
    adapter: Option<u32>,
    vm: Option<u32>,
    controller: Option<String>,
    process: Option<String>,
}

/// The values of the time since the row before.
#[derive(Debug, Deserialize, Serialize)]
pub struct Row {
    /// Milliseconds since 1970-01-01 UTC.
    pub at_ms: i64,
    /// In the order of the columns; nothing where it is not known.
    pub values: Vec<Option<f64>>,
}

impl Layout {
    /// The layout of a recording.
    #[must_use]
    pub fn of(recording: &Recording) -> Self {
        let place = |id: Option<EntityId>| id.map(|id| id.0);
        let objects = recording.entities().iter().map(|entity| Object {
            kind: entity.kind.name().into(),
            name: entity.name.clone(),
            device: place(entity.device),
            adapter: place(entity.adapter),
            vm: place(entity.vm),
            controller: entity.controller.map(|controller| controller.name().into()),
            process: entity.process.clone(),
        });
        let columns = recording.columns();
        Self {
            host: recording.host.clone(),
            objects: objects.collect(),
            columns: columns.map(|(id, counter, _)| (id.0, counter.info().key.into())).collect(),
        }
    }

    /// The objects, in a recording without a column, and the columns; `None` where something is not
    /// known here.
    #[must_use]
    pub fn recording(&self) -> Option<(Recording, Vec<(EntityId, Counter)>)> {
        let count = self.objects.len() as u32;
        let place = |id: Option<u32>| id.filter(|id| *id < count).map(EntityId);
        let mut recording = Recording::new(self.host.clone());
        for object in &self.objects {
            let kind = Kind::ALL.into_iter().find(|kind| kind.name() == object.kind)?;
            let named = |name: &String| {
                Controller::ALL.into_iter().find(|controller| controller.name() == name)
            };
            recording.add_entity(Entity {
                device: place(object.device),
                adapter: place(object.adapter),
                vm: place(object.vm),
                controller: object.controller.as_ref().and_then(named),
                process: object.process.clone(),
                ..Entity::new(kind, object.name.clone())
            });
        }
        let column = |(id, key): &(u32, String)| Some((place(Some(*id))?, Counter::from_key(key)?));
        Some((recording, self.columns.iter().map(column).collect::<Option<_>>()?))
    }
}

impl Row {
    /// The last row of a recording; `None` where it has none.
    #[must_use]
    pub fn of(recording: &Recording) -> Option<Self> {
        let at_ms = recording.times_ms.last().copied()?;
        let values = recording.columns().map(|(_, _, values)| values.last().copied());
        let values = values.map(|value| value.filter(|value| value.is_finite())).collect();
        Some(Self { at_ms, values })
    }
}
