/** An MCP server with the five tools of a recipe book in a folder: `node server.ts <folder>`. */
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';
import { recipe, recipeChanges } from './recipe.ts';
import { RecipeStore } from './store.ts';

const [folder = 'recipes'] = process.argv.slice(2);
const store = new RecipeStore(folder);
const id = z.string().describe('As list_recipes and create_recipe give it');

serveStdio(() => {
  const server = new McpServer({ name: 'recipes', version: '1.0.0' });
  server.registerTool(
    'create_recipe',
    { description: 'Puts a new recipe into the book.', inputSchema: recipe },
    async (given) => says({ id: await store.create(given) }),
  );
  server.registerTool(
    'get_recipe',
    {
      description: 'Gives a recipe, whole.',
      inputSchema: z.object({ id }),
      annotations: { readOnlyHint: true },
    },
    async (asked) => says({ id: asked.id, ...(await store.get(asked.id)) }),
  );
  server.registerTool(
    'list_recipes',
    { description: 'Gives the id and the title of every recipe.', annotations: { readOnlyHint: true } },
    async () => says({ recipes: await store.list() }),
  );
  server.registerTool(
    'update_recipe',
    {
      description: 'Changes what is given of a recipe, and leaves the rest.',
      inputSchema: recipeChanges.extend({ id }),
      annotations: { idempotentHint: true },
    },
    async ({ id: changed, ...changes }) => says({ id: changed, ...(await store.update(changed, changes)) }),
  );
  server.registerTool(
    'delete_recipe',
    { description: 'Tears a recipe out of the book.', inputSchema: z.object({ id }) },
    async (asked) => {
      await store.delete(asked.id);
      return says({ deleted: asked.id });
    },
  );
  return server;
});

function says(result: object) {
  return { content: [{ type: 'text' as const, text: JSON.stringify(result) }] };
}
