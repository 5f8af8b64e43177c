import { styleText } from 'node:util';
import { nativeTool } from 'switchboard/agent';
import { type Recipe, recipe } from './recipe.ts';

/** A native tool: it runs in the chat's process, which owns the terminal. */
export const displayRecipe = nativeTool({
  name: 'display_recipe',
  description: 'Shows the user a recipe, nicely set. Say nothing of it again in words.',
  input: recipe,
  run: (shown) => {
    process.stdout.write(`\n${card(shown)}\n`);
    return 'The user sees it.';
  },
});

function card({ title, servings, ingredients, steps }: Recipe): string {
  const heading = `${title} · for ${servings}`;
  return [
    styleText('bold', heading),
    '─'.repeat(heading.length),
    ...ingredients.map((ingredient) => `  • ${ingredient}`),
    '',
    ...steps.map((step, index) => `  ${index + 1}. ${step}`),
    '',
  ].join('\n');
}
