import java.util.HashSet;
import java.util.Set;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/** Runs classes of JUnit's tests, and prints when a test begins and how it ends. */
public class Report extends RunListener {
    private final Set<Description> told = new HashSet<>();

    private void tell(String what, Description test) {
        String name = test.getTestClass().getName().replaceFirst("com.rabbitmq.client.", "");
        System.out.println(what + " " + name.replaceFirst("test.", "") + "." + test.getMethodName());
    }

    @Override public void testStarted(Description test) {
        tell("began", test);
    }

    @Override public void testFailure(Failure failure) {
        if (told.add(failure.getDescription())) {
            tell("failed", failure.getDescription());
        }
        System.out.println(failure.getTrace());
    }

    @Override public void testAssumptionFailure(Failure failure) {
        told.add(failure.getDescription());
        tell("skipped", failure.getDescription());
    }

    @Override public void testFinished(Description test) {
        if (!told.contains(test)) {
            tell("passed", test);
        }
    }

    public static void main(String[] classes) throws Exception {
        JUnitCore runner = new JUnitCore();
        runner.addListener(new Report());
        for (String each : classes) {
            runner.run(Class.forName(each));
        }
        // Some tests leave threads behind.
        System.exit(0);
    }
}
