// Prints the module in the file that is given, minified.
import { rolldown } from "rolldown";

const build = await rolldown({ input: process.argv[2], platform: "browser" });
const { output } = await build.generate({ format: "esm", minify: true });
await build.close();
process.stdout.write(output[0].code);
