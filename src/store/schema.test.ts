import { expect, it } from 'vitest';
import { freshDatabase } from '../../test/helpers/database.ts';
import { generateSchema } from '../../test/helpers/schema.ts';

it('the table types match the database (vitest -u updates them)', async () => {
  await using database = await freshDatabase();
  await expect(await generateSchema(database.socketUrl)).toMatchFileSnapshot('./schema.ts');
});
