import { expect, it } from 'vitest';
import { freshDatabase } from '../../test/helpers/database.ts';
import { generateSchema } from '../../test/helpers/schema.ts';

it('the types of the tables are those of the database (vitest -u writes them anew)', async () => {
  await using database = await freshDatabase();
  await expect(await generateSchema(database.socketUrl)).toMatchFileSnapshot('./schema.ts');
});
