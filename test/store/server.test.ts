import { describe, expect, inject, it } from 'vitest';
import { freshDatabase } from '../helpers/database.ts';
import { requirePart } from '../helpers/parts.ts';
import { openTestStore } from '../helpers/store.ts';

describe('the PostgreSQL of a distribution', () => {
  it.each(['url', 'socketUrl'] as const)('works as the database, connected by its %s', async (way) => {
    await using database = await freshDatabase('empty');
    await using store = await openTestStore({ url: database[way] });
    const { id } = await store.projects.create({ name: 'kept' });
    await using again = await openTestStore({ url: database[way] });
    expect((await again.projects.get(id))?.project.name).toBe('kept');
  });

  it('is used by the tests', (test) => {
    requirePart('postgres', test);
    expect(inject('postgres').isDebian).toBe(true);
  });
});
